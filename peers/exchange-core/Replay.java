import exchange.core2.collections.objpool.ObjectsPool;
import exchange.core2.core.common.CoreSymbolSpecification;
import exchange.core2.core.common.OrderAction;
import exchange.core2.core.common.OrderType;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.common.cmd.CommandResultCode;
import exchange.core2.core.common.cmd.OrderCommand;
import exchange.core2.core.common.cmd.OrderCommandType;
import exchange.core2.core.common.config.LoggingConfiguration;
import exchange.core2.core.orderbook.IOrderBook;
import exchange.core2.core.orderbook.OrderBookDirectImpl;
import exchange.core2.core.orderbook.OrderBookEventsHelper;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;

/**
 * Replays a flow of `walras-lab bench matching --flow` through the order book of exchange-core, its faster one. A replacement is a
 * cancel and a new order, since its move keeps the size. One command object is used again and again. The first runs, five million commands at
 * least, warm the compiler up and do not count.
 */
public final class Replay {
  private static final int WARM_COMMANDS = 5_000_000;

  private record Command(char kind, long id, boolean isBuy, long tick, long lots, boolean rests) {}

  private static List<List<Command>> read(String path) throws IOException {
    List<List<Command>> parts = List.of(new ArrayList<>(), new ArrayList<>());
    int part = 0;
    try (BufferedReader lines = Files.newBufferedReader(Paths.get(path))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.equals("-")) {
          part = 1;
          continue;
        }
        String[] words = line.split(" ");
        char kind = words[0].charAt(0);
        long id = Long.parseLong(words[1]) << 32 | Long.parseLong(words[2]);
        parts.get(part).add(switch (kind) {
          case 'N' -> new Command(kind, id, words[3].equals("B"), Long.parseLong(words[4]), Long.parseLong(words[5]),
              words[6].equals("R"));
          case 'R' -> new Command(kind, id, false, Long.parseLong(words[3]), Long.parseLong(words[4]), true);
          default -> new Command(kind, id, false, 0, 0, false);
        });
      }
    }
    return parts;
  }

  private static final class Engine {
    private final OrderCommand wish = new OrderCommand();
    private final IOrderBook book;

    Engine() {
      CoreSymbolSpecification symbol =
          CoreSymbolSpecification.builder().symbolId(1).type(SymbolType.FUTURES_CONTRACT).baseCurrency(1).quoteCurrency(2).build();
      LoggingConfiguration silent = new LoggingConfiguration(EnumSet.noneOf(LoggingConfiguration.LoggingLevel.class));
      book = new OrderBookDirectImpl(symbol, ObjectsPool.createDefaultTestPool(),
          OrderBookEventsHelper.NON_POOLED_EVENTS_HELPER, silent);
    }

    void apply(Command command) {
      if (command.kind == 'N') {
        place(command.id, command.isBuy, command.tick, command.lots, command.rests);
        return;
      }
      wish.command = OrderCommandType.CANCEL_ORDER;
      wish.orderId = command.id;
      wish.uid = command.id >> 32;
      wish.matcherEvent = null;
      IOrderBook.processCommand(book, wish);
      if (command.kind == 'R' && wish.matcherEvent != null) {
        place(command.id, wish.action == OrderAction.BID, command.tick, command.lots, true);
      }
    }

    private void place(long id, boolean isBuy, long tick, long lots, boolean rests) {
      wish.command = OrderCommandType.PLACE_ORDER;
      wish.orderId = id;
      wish.uid = id >> 32;
      wish.action = isBuy ? OrderAction.BID : OrderAction.ASK;
      wish.orderType = rests ? OrderType.GTC : OrderType.IOC;
      wish.price = tick;
      wish.reserveBidPrice = tick;
      wish.size = lots;
      wish.resultCode = CommandResultCode.VALID_FOR_MATCHING_ENGINE;
      wish.matcherEvent = null;
      IOrderBook.processCommand(book, wish);
    }

    int resting() {
      return book.getOrdersNum(OrderAction.ASK) + book.getOrdersNum(OrderAction.BID);
    }
  }

  public static void main(String[] arguments) throws IOException {
    List<List<Command>> parts = read(arguments[0]);
    int runs = Integer.parseInt(arguments[1]);
    double[] times = new double[runs];
    int resting = 0;
    int warm = Math.max(3, WARM_COMMANDS / Math.max(1, parts.get(1).size()));
    for (int run = -warm; run < runs; run++) {
      Engine engine = new Engine();
      parts.get(0).forEach(engine::apply);
      List<Command> commands = parts.get(1);
      long begun = System.nanoTime();
      for (Command command : commands) {
        engine.apply(command);
      }
      double time = (double) (System.nanoTime() - begun) / commands.size();
      resting = engine.resting();
      if (run >= 0) {
        times[run] = time;
      }
    }
    Arrays.sort(times);
    System.out.printf("{\"resting\":%d,\"resting_after\":%d,\"commands\":%d,\"ns_per_command\":%.1f}%n", parts.get(0).size(), resting,
        parts.get(1).size(), times[runs / 2]);
  }
}
