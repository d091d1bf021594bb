import { defineConfig } from "vitest/config";
import { resolve } from "./vite.config";

export default defineConfig({
  resolve,
  test: { include: ["tests/**/*.test.ts"], testTimeout: 600_000, hookTimeout: 600_000 },
});
