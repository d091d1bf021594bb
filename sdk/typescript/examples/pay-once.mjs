// Pays an invoice once, however often this runs.
//   WALRAS_KEY=0x… node examples/pay-once.mjs 0x7099… EUR 12.50 "invoice 7" FOLDER
// The transaction is stored in the folder before it is sent; a second run with the same reference finds it.
import { Client, EthereumKey, TransactionRefusedError, UndecidedError } from "@walras/client";
import { FolderStore } from "@walras/client/node";

const [to, asset, amount, reference, folder] = process.argv.slice(2);
const key = new EthereumKey(process.env.WALRAS_KEY);
const client = new Client(process.env.WALRAS_SERVER, { key, store: new FolderStore(folder) });
try {
  const fate = await client.pay(to, asset, amount, { reference });
  console.log(`Paid ${amount} ${asset} in block ${fate.height}: ${fate.id}`);
} catch (error) {
  if (error instanceof UndecidedError) console.error(`Nobody knows yet: run this again. ${error.message}`);
  else if (error instanceof TransactionRefusedError) console.error(`Refused: ${error.remedy}. Once that is mended, run this again.`);
  else throw error;
  process.exitCode = error instanceof UndecidedError ? 3 : 1;
}
