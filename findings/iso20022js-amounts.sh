#!/bin/sh
# iso20022.js 0.0.15 (npm): amounts of a camt.053 statement are fractions of a cent, yen are a hundred times too many, and the
# end-to-end id of a new payment lacks its last sign.
#
# A statement's amounts become numbers of the smallest unit by a product with 100 in floating point, whatever the currency: 1.15
# dollars are 114.99999999999999 cents, 1000 yen are 100000. A payment of 1000 yen is written as 10. An EndToEndId that the caller
# does not name is a UUID, which has 36 characters, cut to the 35 that the field holds: it is no UUID.
# Seen on 29 November 2026:
#   iso20022.js 0.0.15: USD 1.15 is 114.99999999999999, JPY 1000 is 100000; 1000 JPY are written as 10; an EndToEndId of 35 signs
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund iso20022.js@0.0.15 >/dev/null
cat >run.mjs <<'JAVASCRIPT'
import { CashManagementEndOfDayReport, ISO20022 } from "iso20022.js";

const read = (currency, amount) => {
  const money = `<Amt Ccy="${currency}">${amount}</Amt>`;
  const xml = `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
<GrpHdr><MsgId>m</MsgId><CreDtTm>2026-11-01T00:00:00Z</CreDtTm></GrpHdr>
<Stmt><Id>s</Id><ElctrncSeqNb>1</ElctrncSeqNb><CreDtTm>2026-11-01T00:00:00Z</CreDtTm>
<FrToDt><FrDtTm>2026-11-01T00:00:00Z</FrDtTm><ToDtTm>2026-11-02T00:00:00Z</ToDtTm></FrToDt>
<Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>${currency}</Ccy><Ownr><Nm>A</Nm></Ownr>
<Svcr><FinInstnId><BIC>CHASUS33</BIC><Nm>B</Nm></FinInstnId></Svcr></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp>${money}<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-01</Dt></Dt></Bal>
<Ntry><NtryRef>1</NtryRef>${money}<CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-11-01</Dt></BookgDt>
<AcctSvcrRef>r</AcctSvcrRef><BkTxCd><Prtry><Cd>X</Cd></Prtry></BkTxCd>
<NtryDtls><TxDtls><Refs><EndToEndId>e</EndToEndId></Refs>${money}</TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>`;
  return CashManagementEndOfDayReport.fromXML(xml).statements[0].entries[0].amount;
};
const agent = { bic: "CHASUS33", bankAddress: { country: "US" } };
const payer = new ISO20022({ initiatingParty: { name: "A", id: "A", account: { accountNumber: "1" }, agent } });
const address = { streetName: "S", townName: "T", postalCode: "1", country: "DE" };
const creditor = { name: "C", account: { iban: "DE89370400440532013000" }, agent: { bic: "DEUTDEFF" }, address };
const payment = { type: "swift", direction: "credit", amount: 1000, currency: "JPY", creditor };
const written = payer.createSWIFTCreditPaymentInitiation([payment]).toString();
const [dollars, yen] = [read("USD", "1.15"), read("JPY", "1000")];
const amount = written.match(/<InstdAmt Ccy="JPY">([^<]*)/)[1];
const id = written.match(/<EndToEndId>([^<]*)/)[1];
console.log(
  `iso20022.js 0.0.15: USD 1.15 is ${dollars}, JPY 1000 is ${yen}; 1000 JPY are written as ${amount}; ` +
    `an EndToEndId of ${id.length} signs`,
);
const isSo = !Number.isInteger(dollars) && yen === 100000 && amount === "10" && /^[0-9a-f-]{35}$/.test(id);
process.exit(isSo ? 0 : 1);
JAVASCRIPT
node run.mjs
