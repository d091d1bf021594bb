import com.paritytrading.juncture.nasdaq.itch50.ITCH50.*;
import com.paritytrading.juncture.nasdaq.itch50.ITCH50Listener;
import com.paritytrading.juncture.nasdaq.itch50.ITCH50Parser;
import com.paritytrading.nassau.MessageListener;
import com.paritytrading.nassau.soupbintcp.SoupBinTCP;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClient;
import com.paritytrading.nassau.soupbintcp.SoupBinTCPClientStatusListener;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;

/**
 * A session of SoupBinTCP by Nassau. {@code order PORT REF SYMBOL PRICE LOTS} buys by OUCH 5.0 and prints, in
 * hexadecimal, what comes until the order has traded. {@code book PORT} reads a snapshot of market data by Juncture's
 * ITCH 5.0 and prints its resting orders: number, side, price, lots.
 */
public class Nassau {
    static boolean isDone = false;
    static final TreeMap<Long, Object[]> BOOK = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        boolean isOrder = args[0].equals("order");
        SocketChannel channel = SocketChannel.open(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[1])));
        MessageListener listener = isOrder ? Nassau::hear : snapshot();
        SoupBinTCPClient client = new SoupBinTCPClient(channel, 1024, listener, new Status(isOrder ? args : null));
        SoupBinTCP.LoginRequest login = new SoupBinTCP.LoginRequest();
        login.setUsername("ALICE");
        login.setPassword("x");
        login.setRequestedSession("");
        login.setRequestedSequenceNumber(1);
        client.login(login);
        while (!isDone && client.receive() >= 0) { }
        BOOK.forEach((id, of) -> System.out.println(id + " " + of[0] + " " + of[1] + " " + of[2]));
        System.exit(isDone ? 0 : 1);
    }

    static ByteBuffer order(String[] args) {
        ByteBuffer bytes = ByteBuffer.allocate(64);
        bytes.put((byte)'O').putInt(Integer.parseInt(args[2])).put((byte)'B').putInt(Integer.parseInt(args[5]));
        bytes.put(String.format("%-8s", args[3]).getBytes(StandardCharsets.US_ASCII)).putLong(Long.parseLong(args[4]));
        bytes.put("0YPNN".getBytes(StandardCharsets.US_ASCII));
        bytes.put(String.format("%-14s", "nassau").getBytes(StandardCharsets.US_ASCII));
        // No options follow.
        bytes.putShort((short)0);
        bytes.flip();
        return bytes;
    }

    static void hear(ByteBuffer message) {
        byte kind = message.get(message.position());
        StringBuilder text = new StringBuilder();
        while (message.hasRemaining()) text.append(String.format("%02x", message.get()));
        System.out.println(text);
        isDone |= kind == 'E' || kind == 'J';
    }

    static MessageListener snapshot() {
        ITCH50Listener book = (ITCH50Listener)Proxy.newProxyInstance(
            Nassau.class.getClassLoader(), new Class<?>[] { ITCH50Listener.class }, (proxy, method, args) -> {
                if (args[0] instanceof AddOrder of)
                    BOOK.put(of.orderReferenceNumber, new Object[] { (char)of.buySellIndicator, of.price, of.shares });
                return null;
            });
        ITCH50Parser parser = new ITCH50Parser(book);
        return message -> {
            if (message.get(message.position()) == 'G') isDone = true; else parser.message(message);
        };
    }

    record Status(String[] order) implements SoupBinTCPClientStatusListener {
        public void loginAccepted(SoupBinTCPClient client, SoupBinTCP.LoginAccepted of) throws java.io.IOException {
            if (order != null) client.send(Nassau.order(order));
        }
        public void loginRejected(SoupBinTCPClient client, SoupBinTCP.LoginRejected of) { System.exit(2); }
        public void heartbeatTimeout(SoupBinTCPClient client) { System.exit(3); }
        public void endOfSession(SoupBinTCPClient client) { if (!isDone) System.exit(4); }
    }
}
