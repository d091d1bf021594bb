/** What the page takes for an answer, and how long it waits for one. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError, get, getIfThere, post } from "../src/api";

const fetched = vi.fn<typeof fetch>();

beforeEach(() => {
  vi.stubGlobal("document", { baseURI: "http://node/" });
  vi.stubGlobal("fetch", fetched);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const errorOf = (asked: Promise<unknown>) => asked.then(() => null, (error: ApiError) => ({ status: error.status, code: error.code }));
const silent = { status: 0, code: "unreachable" };

/** A node that takes the question and says nothing, until whoever asked gives up. */
function mute(_: unknown, request?: RequestInit): Promise<Response> {
  return new Promise((_, reject) => request?.signal?.addEventListener("abort", () => reject(request.signal?.reason)));
}

it("takes a node that says nothing for one that does not answer", async () => {
  const patience = new AbortController();
  const asked_ms = vi.spyOn(AbortSignal, "timeout").mockReturnValue(patience.signal);
  fetched.mockImplementation(mute);
  const asked = [get("status"), get("status", new AbortController().signal), post("orders", {})].map(errorOf);
  patience.abort(new DOMException("late", "TimeoutError"));
  expect(await Promise.all(asked)).toEqual([silent, silent, silent]);
  expect(asked_ms).toHaveBeenCalledWith(60_000);
});

it("stays silent itself where its view has closed", async () => {
  const view = new AbortController();
  fetched.mockImplementation(mute);
  const asked = get("status", view.signal);
  view.abort();
  await expect(asked).rejects.toMatchObject({ name: "AbortError" });
});

it("tells an answer that cannot be read from one that broke off, and neither from a refusal", async () => {
  const body = (text: () => Promise<unknown>, status = 200) => ({ ok: status < 400, status, headers: new Headers(), json: text }) as Response;
  fetched.mockResolvedValueOnce(new Response("<html>", { status: 200 }));
  expect(await errorOf(get("status"))).toEqual({ status: 0, code: "malformed" });
  fetched.mockResolvedValueOnce(body(() => Promise.reject(new TypeError("terminated"))));
  expect(await errorOf(get("status"))).toEqual(silent);
  fetched.mockResolvedValueOnce(new Response("<html>", { status: 502 }));
  expect(await errorOf(post("orders", {}))).toEqual({ status: 502, code: "unknown" });
});

it("tells what is not there from what could not be asked", async () => {
  const { signal } = new AbortController();
  fetched.mockResolvedValueOnce(Response.json({ error: { code: "not_found", message: "no" } }, { status: 404 }));
  expect(await getIfThere("lane", signal)).toBeNull();
  fetched.mockResolvedValueOnce(Response.json({ height: 1 }));
  expect(await getIfThere("lane", signal)).toEqual({ height: 1 });
  fetched.mockRejectedValueOnce(new TypeError("no network"));
  expect(await errorOf(getIfThere("lane", signal))).toEqual(silent);
});
