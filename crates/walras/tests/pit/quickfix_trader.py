"""An order system on QuickFIX: buys two lots at a bridge, and waits until its trade is settled.

Arguments: the settings of its session. Prints each report as it comes.
"""

import os
import sys
from datetime import datetime, timezone
from queue import Queue

import quickfix

PATIENCE_S = 120
heard: "Queue[str]" = Queue()


class OrderSystem(quickfix.Application):
    def onCreate(self, session): pass
    def onLogon(self, session): heard.put("logon")
    def onLogout(self, session): pass
    def toAdmin(self, message, session): pass
    def fromAdmin(self, message, session): pass
    def toApp(self, message, session): pass
    def fromApp(self, message, session): heard.put(message.toString())


settings, application = quickfix.SessionSettings(sys.argv[1]), OrderSystem()
store, log = quickfix.FileStoreFactory(settings), quickfix.FileLogFactory(settings)
initiator = quickfix.SocketInitiator(application, store, settings, log)
initiator.start()
assert heard.get(timeout=PATIENCE_S) == "logon"
order = quickfix.Message()
now = datetime.now(timezone.utc).strftime("%Y%m%d-%H:%M:%S")
for tag, value in ((8, "FIX.4.4"), (35, "D")):
    order.getHeader().setField(quickfix.StringField(tag, value))
for tag, value in ((11, "q-1"), (55, sys.argv[2]), (54, "1"), (60, now), (38, "2"), (40, "2"), (44, "0.0099")):
    order.setField(quickfix.StringField(tag, value))
assert quickfix.Session.sendToTarget(order, "QUICK", "WALRAS")
while True:
    report = heard.get(timeout=PATIENCE_S)
    print(report.replace("\x01", "|"), flush=True)
    if "is settled at height" in report:
        break
initiator.stop()
# The library's threads do not end by themselves.
os._exit(0)
