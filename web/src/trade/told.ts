/** What the reader is told as it stands. */
export class Told extends Error {}
