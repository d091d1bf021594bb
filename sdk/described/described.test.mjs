// The descriptions that a node gives of itself are valid, and public generators make working clients of them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { Parser } from "@asyncapi/parser";

const run = promisify(execFile);
const node = process.env.WALRAS_HTTP;
const env = { ...process.env, DO_NOT_TRACK: "1", PYTHONPATH: "generated" };
const bin = (name) => `node_modules/.bin/${name}`;
const documents = { openapi: "/v1/openapi.json", venue: "/v1/venue/openapi.json" };

before(async () => {
  await rm("generated", { recursive: true, force: true });
  await mkdir("generated", { recursive: true });
  for (const [name, path] of Object.entries(documents)) {
    await writeFile(`generated/${name}.json`, await (await fetch(node + path)).text());
  }
});

test("AsyncAPI: both streams", async () => {
  for (const path of ["/v1/asyncapi.json", "/v1/venue/asyncapi.json"]) {
    const { document, diagnostics } = await new Parser().parse(await (await fetch(node + path)).text());
    const faults = diagnostics.filter((one) => one.severity < 2).map((one) => `${one.path.join("/")}: ${one.message}`);
    assert.deepEqual(faults, []);
    assert.ok(document.allMessages().all().length > 5, path);
  }
});

test("OpenAPI: both documents", async () => {
  const files = Object.keys(documents).map((name) => `generated/${name}.json`);
  await run(".venv/bin/python", ["-m", "openapi_spec_validator", ...files]);
});

// Generators name an argument of a function after each parameter.
test("no parameter has a name that a language reserves", async () => {
  const reserved = /^(class|default|enum|export|function|import|in|new|package|return|var|with)$/;
  for (const path of Object.values(documents)) {
    const { paths } = await (await fetch(node + path)).json();
    const operations = Object.values(paths).flatMap(Object.values);
    const names = new Set(operations.flatMap(({ parameters }) => parameters ?? []).map(({ name }) => name));
    assert.deepEqual([...names].filter((name) => reserved.test(name)), [], path);
  }
});

test("two generators for TypeScript", async () => {
  for (const name of Object.keys(documents)) {
    await run(bin("openapi-typescript"), [`generated/${name}.json`, "-o", `generated/${name}.ts`]);
    await run(bin("openapi-ts"), ["-i", `./generated/${name}.json`, "-o", `generated/hey-${name}`, "--silent"], { env });
  }
  await run(bin("tsc"), ["-p", "."]).catch((failed) => assert.fail(failed.stdout));
  for (const use of ["fetch", "hey"]) await run("node", [`generated/run/uses/${use}.js`], { env });
});

test("a generator for Python", async () => {
  for (const name of Object.keys(documents)) {
    const output = ["--output-path", `generated/${name}_client`, "--meta", "none"];
    const made = await run(".venv/bin/openapi-python-client", ["generate", "--path", `generated/${name}.json`, ...output]);
    assert.doesNotMatch(made.stdout + made.stderr, /WARNING|Unable/, "something was left out");
  }
  await run(".venv/bin/python", ["uses/generated.py"], { env });
});
