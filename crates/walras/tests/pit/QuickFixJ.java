import java.nio.file.Path;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import quickfix.ApplicationAdapter;
import quickfix.DefaultMessageFactory;
import quickfix.FileStoreFactory;
import quickfix.Message;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionSettings;
import quickfix.SocketInitiator;

/** An order system on QuickFIX/J: buys two lots at a bridge, and waits until its trade is settled. */
public class QuickFixJ {
    static final LinkedBlockingQueue<String> HEARD = new LinkedBlockingQueue<>();

    static String next() throws Exception {
        String heard = HEARD.poll(120, TimeUnit.SECONDS);
        if (heard == null) {
            throw new IllegalStateException("nothing came");
        }
        return heard;
    }

    public static void main(String[] arguments) throws Exception {
        SessionSettings settings = new SessionSettings(Path.of(arguments[0]).toString());
        SocketInitiator initiator = new SocketInitiator(
            new ApplicationAdapter() {
                @Override
                public void onLogon(SessionID session) {
                    HEARD.add("logon");
                }

                @Override
                public void fromApp(Message message, SessionID session) {
                    HEARD.add(message.toString());
                }
            },
            new FileStoreFactory(settings),
            settings,
            new DefaultMessageFactory());
        initiator.start();
        if (!next().equals("logon")) {
            throw new IllegalStateException("no logon");
        }
        Message order = new Message();
        order.getHeader().setString(8, "FIX.4.4");
        order.getHeader().setString(35, "D");
        String now = ZonedDateTime.now(ZoneOffset.UTC).format(DateTimeFormatter.ofPattern("yyyyMMdd-HH:mm:ss"));
        String[][] fields = {
            {"11", "j-1"}, {"55", arguments[1]}, {"54", "1"}, {"60", now}, {"38", "2"}, {"40", "2"}, {"44", "0.0097"}
        };
        for (String[] field : fields) {
            order.setString(Integer.parseInt(field[0]), field[1]);
        }
        if (!Session.sendToTarget(order, "QUICKJ", "WALRAS")) {
            throw new IllegalStateException("the order was not sent");
        }
        String report;
        do {
            report = next();
            System.out.println(report.replace('\u0001', '|'));
        } while (!report.contains("is settled at height"));
        initiator.stop();
    }
}
