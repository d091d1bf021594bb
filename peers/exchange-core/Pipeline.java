import exchange.core2.core.ExchangeApi;
import exchange.core2.core.ExchangeCore;
import exchange.core2.core.common.CoreSymbolSpecification;
import exchange.core2.core.common.CoreWaitStrategy;
import exchange.core2.core.common.MatcherEventType;
import exchange.core2.core.common.MatcherTradeEvent;
import exchange.core2.core.common.OrderAction;
import exchange.core2.core.common.OrderType;
import exchange.core2.core.common.SymbolType;
import exchange.core2.core.common.api.ApiAddUser;
import exchange.core2.core.common.api.ApiAdjustUserBalance;
import exchange.core2.core.common.api.ApiCommand;
import exchange.core2.core.common.api.binary.BatchAddSymbolsCommand;
import exchange.core2.core.common.cmd.CommandResultCode;
import exchange.core2.core.common.cmd.OrderCommand;
import exchange.core2.core.common.config.ExchangeConfiguration;
import exchange.core2.core.common.config.InitialStateConfiguration;
import exchange.core2.core.common.config.LoggingConfiguration;
import exchange.core2.core.common.config.PerformanceConfiguration;
import exchange.core2.core.common.config.SerializationConfiguration;
import exchange.core2.core.orderbook.OrderBookDirectImpl;
import exchange.core2.core.processors.journaling.DiskSerializationProcessor;
import exchange.core2.core.processors.journaling.DiskSerializationProcessorConfiguration;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Sends a flow of `walras-lab bench venue --flow` through the whole of exchange-core: grouping, risk, matching and its journal on a
 * disk. One risk engine and one matching engine, its faster order book, the settings of its throughput profile else; its threads
 * are not bound to cores, and wait as the third argument says. A command counts when its result has come, which is after its
 * bytes are journaled. A replacement is its move, since those of the flow keep their sizes. Each run has a core and a journal of
 * its own; the first ones, five million commands at least, warm the compiler up and do not count.
 *
 * usage: Pipeline FLOW RUNS YIELDING|BLOCKING FOLDER
 */
public final class Pipeline {
  private static final int WARM_COMMANDS = Integer.getInteger("warm", 5_000_000);
  private static final int SYMBOL = 1;
  private static final int BASE = 1;
  private static final int QUOTE = 2;
  /** Above every price of a flow: what a buyer's move may reach, and what it holds for a lot. */
  private static final long RESERVE = 1 << 17;
  private static final long RICH = 1L << 50;

  private record Command(char kind, long id, long owner, boolean isBuy, long tick, long lots, boolean rests) {}

  private static List<Command> read(String path) throws IOException {
    List<Command> commands = new ArrayList<>();
    for (String line : Files.readAllLines(Paths.get(path))) {
      String[] words = line.split(" ");
      char kind = words[0].charAt(0);
      long owner = Long.parseLong(words[1]);
      long id = Long.parseLong(words[2]);
      commands.add(switch (kind) {
        case 'N' -> new Command(kind, id, owner, words[3].equals("B"), Long.parseLong(words[4]), Long.parseLong(words[5]),
            words[6].equals("R"));
        case 'R' -> new Command(kind, id, owner, false, Long.parseLong(words[3]), 0, true);
        default -> new Command(kind, id, owner, false, 0, 0, false);
      });
    }
    return commands;
  }

  /** What a run came to. */
  private static final class Counts {
    private final CountDownLatch done = new CountDownLatch(1);
    private long left;
    private long lots;
    private long refused;

    Counts(int commands) {
      left = commands;
    }

    void see(OrderCommand of, long sequence) {
      switch (of.command) {
        case PLACE_ORDER, CANCEL_ORDER, MOVE_ORDER -> { }
        default -> { return; }
      }
      if (of.resultCode != CommandResultCode.SUCCESS) {
        refused++;
      }
      for (MatcherTradeEvent event = of.matcherEvent; event != null; event = event.nextEvent) {
        if (event.eventType == MatcherEventType.TRADE) {
          lots += event.size;
        }
      }
      if (--left == 0) {
        done.countDown();
      }
    }
  }

  private static ExchangeCore core(Counts counts, String name, Path folder, CoreWaitStrategy waits) {
    DiskSerializationProcessorConfiguration usual = DiskSerializationProcessorConfiguration.createDefaultConfig();
    DiskSerializationProcessorConfiguration disk = DiskSerializationProcessorConfiguration.builder()
        .storageFolder(folder.toString())
        .snapshotLz4CompressorFactory(usual.getSnapshotLz4CompressorFactory())
        .journalFileMaxSize(usual.getJournalFileMaxSize())
        .journalBufferSize(usual.getJournalBufferSize())
        .journalBatchCompressThreshold(usual.getJournalBatchCompressThreshold())
        .journalLz4CompressorFactory(usual.getJournalLz4CompressorFactory())
        .build();
    PerformanceConfiguration performance = PerformanceConfiguration.throughputPerformanceBuilder()
        .matchingEnginesNum(1)
        .riskEnginesNum(1)
        .threadFactory(Thread::new)
        .waitStrategy(waits)
        .orderBookFactory(OrderBookDirectImpl::new)
        .build();
    ExchangeConfiguration settings = ExchangeConfiguration.defaultBuilder()
        .initStateCfg(InitialStateConfiguration.cleanStartJournaling(name))
        .performanceCfg(performance)
        .loggingCfg(new LoggingConfiguration(EnumSet.noneOf(LoggingConfiguration.LoggingLevel.class)))
        .serializationCfg(new SerializationConfiguration(true, of -> new DiskSerializationProcessor(of, disk)))
        .build();
    return ExchangeCore.builder().resultsConsumer(counts::see).exchangeConfiguration(settings).build();
  }

  private static void found(ExchangeApi api, List<Command> commands) {
    api.submitBinaryDataAsync(new BatchAddSymbolsCommand(CoreSymbolSpecification.builder().symbolId(SYMBOL)
        .type(SymbolType.CURRENCY_EXCHANGE_PAIR).baseCurrency(BASE).quoteCurrency(QUOTE).baseScaleK(1).quoteScaleK(1)
        .takerFee(0).makerFee(0).build())).join();
    List<ApiCommand> users = new ArrayList<>();
    commands.stream().mapToLong(Command::owner).distinct().sorted().forEach(owner -> {
      users.add(ApiAddUser.builder().uid(owner + 1).build());
      for (int currency : new int[] {BASE, QUOTE}) {
        users.add(ApiAdjustUserBalance.builder().uid(owner + 1).transactionId(currency).amount(RICH).currency(currency).build());
      }
    });
    api.submitCommandsSync(users);
  }

  private static void send(ExchangeApi api, Command of) {
    long uid = of.owner + 1;
    switch (of.kind) {
      case 'N' -> api.placeNewOrder(0, 0L, System.nanoTime(), of.id, 0, of.tick, of.isBuy ? RESERVE : of.tick, of.lots,
          of.isBuy ? OrderAction.BID : OrderAction.ASK, of.rests ? OrderType.GTC : OrderType.IOC, SYMBOL, uid);
      case 'R' -> api.moveOrder(0, 0L, System.nanoTime(), of.tick, of.id, SYMBOL, uid);
      default -> api.cancelOrder(0, 0L, System.nanoTime(), of.id, SYMBOL, uid);
    }
  }

  private static long bytesOf(Path folder) {
    File[] files = folder.toFile().listFiles();
    return files == null ? 0 : Arrays.stream(files).mapToLong(File::length).sum();
  }

  private static void clear(Path folder) {
    File[] files = folder.toFile().listFiles();
    if (files != null) {
      Arrays.stream(files).forEach(File::delete);
    }
  }

  public static void main(String[] arguments) {
    try {
      measure(arguments);
      System.exit(0);
    } catch (Throwable error) {
      // Its threads would keep the program alive.
      error.printStackTrace();
      System.exit(1);
    }
  }

  private static void measure(String[] arguments) throws Exception {
    List<Command> commands = read(arguments[0]);
    int runs = Integer.parseInt(arguments[1]);
    CoreWaitStrategy waits = CoreWaitStrategy.valueOf(arguments[2]);
    Path folder = Files.createDirectories(Paths.get(arguments[3]));
    var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    double[] times = new double[runs];
    double[] cpus = new double[runs];
    long bytes = 0;
    Counts counts = null;
    int warm = Math.max(3, WARM_COMMANDS / commands.size());
    for (int run = -warm; run < runs; run++) {
      clear(folder);
      counts = new Counts(commands.size());
      ExchangeCore core = core(counts, "run" + (run + warm), folder, waits);
      core.startup();
      ExchangeApi api = core.getApi();
      found(api, commands);
      long before = bytesOf(folder);
      long cpu = system.getProcessCpuTime();
      long begun = System.nanoTime();
      for (Command command : commands) {
        send(api, command);
      }
      counts.done.await();
      double time = (double) (System.nanoTime() - begun) / commands.size();
      if (run >= 0) {
        times[run] = time;
        cpus[run] = (double) (system.getProcessCpuTime() - cpu) / commands.size();
      }
      bytes = bytesOf(folder) - before;
      core.shutdown();
    }
    clear(folder);
    Arrays.sort(times);
    Arrays.sort(cpus);
    System.out.printf("{\"commands\":%d,\"ns_per_command\":%.1f,\"cpu_ns_per_command\":%.1f,\"traded_lots\":%d,\"refused\":%d,"
        + "\"journal_bytes\":%d}%n", commands.size(), times[runs / 2], cpus[runs / 2], counts.lots, counts.refused, bytes);
  }
}
