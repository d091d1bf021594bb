// Gives readers of banks' messages in JavaScript the statements of this folder, and prints a row for each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CashManagementEndOfDayReport } from "iso20022.js";

const [folder] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const text = (name) => readFileSync(`${folder}/${name}`, "utf8");
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
const row = (tool, what, told) => console.log(`| ${tool} ${version(tool)} | ${what} | ${told} |`);
const plus = (amount) => `${amount < 0 ? "" : "+"}${amount}`;

/** What the signed amounts of a statement lead to. */
function signed(amounts, opening, closing) {
  const reached = amounts.reduce((sum, amount) => sum + Number(amount), Number(opening));
  const does = reached === Number(closing) ? "which the balance says" : `where the balance is ${closing}`;
  return `${amounts.map(plus).join(", ")}: ${opening} become ${reached}, ${does}`;
}

// It reads the names of version 02.
const older = text("statement.xml").replace("053.001.08", "053.001.02").replaceAll("BICFI", "BIC").replaceAll(/<Sts><Cd>(.*?)<.Cd>/g, "<Sts>$1");
const [found] = CashManagementEndOfDayReport.fromXML(older).statements;
const read = ["invoice-2", "00000000-0000-4000-8000"].filter((id) => JSON.stringify(found).includes(id));
const cents = found.entries.map((entry) => entry.amount).join(", ");
const parts = found.entries[0].transactions.filter((one) => one.amount !== undefined).length;
row("iso20022.js", "camt.053", `entries of ${cents} cents; of the two payments of the first it tells ${parts} amounts; reads ${read.join(" and ") || "no references"}`);

const [statement] = new (require("mt940js").Parser)().parse(text("statement.txt"));
row("mt940js", "MT940", signed(statement.transactions.map((one) => one.amount), statement.openingBalance, statement.closingBalance));
for (const tool of ["swiftmessageparser", "@centrapay/swift-parser"]) {
  const [statement] = require(tool).parse({ type: "mt940", data: text("statement.txt") });
  const { transactions, openingBalance, closingBalance } = statement;
  row(tool, "MT940", signed(transactions.map((one) => one.amount), openingBalance, closingBalance));
}
const [other] = await require("mt940-js").read(Buffer.from(text("statement.txt")));
const { transactions, openingBalance, closingBalance } = other;
row("mt940-js", "MT940", signed(transactions.map((one) => (one.isCredit ? one.amount : -one.amount)), openingBalance.value, closingBalance.value));
