// Replays a flow of `walras-lab bench matching --flow` through liquibook: one book of order pointers without depth, its
// fastest. An order is found by its owner and reference in a hash map, since a client names it so; orders lie in one
// block of memory that is allocated beforehand. Prints the nanoseconds of a command, and the trades.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <simple/simple_order.h>
#include <book/order_book.h>

using liquibook::book::OrderBook;
using liquibook::book::OrderCondition;
using liquibook::simple::SimpleOrder;

struct Command {
  char kind;
  uint64_t id;
  bool is_buy;
  uint32_t tick;
  int32_t lots;
  bool rests;
};

class Book : public OrderBook<SimpleOrder*> {
 public:
  uint64_t trades = 0;

 private:
  // The book keeps what is open in its own trackers; the order itself changes by a replacement alone.
  void perform_callback(TypedCallback& cb) override {
    if (cb.type == TypedCallback::cb_order_fill) {
      ++trades;
      const auto cost = cb.quantity * cb.price;
      cb.matched_order->fill(cb.quantity, cost, 0);
      cb.order->fill(cb.quantity, cost, 0);
    } else if (cb.type == TypedCallback::cb_order_replace) {
      cb.order->replace(cb.delta, cb.price);
    }
  }
};

struct Engine {
  Book book;
  std::vector<SimpleOrder> orders;
  std::unordered_map<uint64_t, SimpleOrder*> by_id;

  explicit Engine(size_t most) {
    orders.reserve(most);
    by_id.reserve(most);
  }

  void apply(const Command& command) {
    if (command.kind == 'N') {
      orders.emplace_back(command.is_buy, command.tick, command.lots);
      SimpleOrder* order = &orders.back();
      by_id[command.id] = order;
      book.add(order, command.rests ? 0 : OrderCondition::oc_immediate_or_cancel);
      return;
    }
    const auto found = by_id.find(command.id);
    if (found == by_id.end()) return;
    SimpleOrder* order = found->second;
    if (order->open_qty() == 0) return;  // it has traded: a client's late wish
    if (command.kind == 'C') {
      book.cancel(order);
      by_id.erase(found);
    } else {
      book.replace(order, command.lots - static_cast<int32_t>(order->open_qty()), command.tick);
    }
  }
};

static std::vector<Command> read(std::istream& in) {
  std::vector<Command> all;
  std::string kind, side, rests;
  while (in >> kind && kind != "-") {
    Command command{kind[0], 0, false, 0, 0, true};
    uint64_t owner, reference;
    in >> owner >> reference;
    command.id = owner << 32 | reference;
    if (kind == "N") {
      in >> side >> command.tick >> command.lots >> rests;
      command.is_buy = side == "B";
      command.rests = rests == "R";
    } else if (kind == "R") {
      in >> command.tick >> command.lots;
    }
    all.push_back(command);
  }
  return all;
}

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: replay FLOW RUNS\n");
    return 2;
  }
  std::ifstream in(arguments[1]);
  const auto orders = read(in), commands = read(in);
  std::vector<double> times;
  uint64_t trades = 0, resting = 0;
  for (int run = 0; run < std::atoi(arguments[2]); ++run) {
    auto engine = std::make_unique<Engine>(orders.size() + commands.size());
    for (const auto& order : orders) engine->apply(order);
    engine->book.trades = 0;
    const auto begun = std::chrono::steady_clock::now();
    for (const auto& command : commands) engine->apply(command);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begun;
    times.push_back(time.count() / commands.size());
    trades = engine->book.trades;
    resting = engine->book.bids().size() + engine->book.asks().size();
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"resting\":%zu,\"resting_after\":%zu,\"commands\":%zu,\"ns_per_command\":%.1f,\"trades_per_command\":%.4f}\n", orders.size(),
              static_cast<size_t>(resting), commands.size(), times[times.size() / 2], static_cast<double>(trades) / commands.size());
}
