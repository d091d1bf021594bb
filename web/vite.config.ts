import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

// The built page carries its own policy, whatever headers the server adds: nothing but its own files and its own node.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const contentSecurityPolicy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    {
      tag: "meta",
      attrs: { "http-equiv": "Content-Security-Policy", content: POLICY },
      injectTo: "head-prepend",
    },
  ],
};

const node = process.env["WALRAS_URL"] ?? "http://127.0.0.1:8080";

/** The page stands on the client's sources; what both need of npm is the page's. */
export const resolve = {
  alias: { "@walras/client": fileURLToPath(new URL("../sdk/typescript/src", import.meta.url)) },
  dedupe: ["@noble/ciphers", "@noble/curves", "@noble/hashes"],
};

export default defineConfig({
  resolve,
  base: "./",
  plugins: [contentSecurityPolicy],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The notices that the licences of bundled code ask for travel with it.
    license: { fileName: "licenses.txt" },
  },
  server: { proxy: { "/v1": { target: node, ws: true } } },
});
