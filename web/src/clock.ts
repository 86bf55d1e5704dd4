// The time of the server. Ages and waiting times compare times of events, which are the server's, with now: in a
// browser whose clock is wrong, they would be wrong by as much.
import { signal } from "@preact/signals";

const tolerance = 20_000; // answers tell whole seconds, and take their time

/** skew is by how much the clock of the server is ahead of that of this browser; 0 if they agree. */
export const skew = signal(0);

/** setClock compares the clocks by the Date header of an answer. */
export function setClock(date: string | null): void {
  const ahead = date ? Date.parse(date) - Date.now() : NaN;
  if (!Number.isFinite(ahead)) return;
  const is = Math.abs(ahead) > tolerance ? ahead : 0;
  if (is === 0 ? skew.value !== 0 : Math.abs(is - skew.value) > 2000) skew.value = is;
}

/** serverNow is the time of the server's clock. */
export function serverNow(): number { return Date.now() + skew.peek(); }
