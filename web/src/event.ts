// The events of a session, as far as the console reads them. docs/EVENTS.md has all of them.

export interface Event {
  type: string;
  id: string;
  timestamp: string;
  parentId: string | null;
  ephemeral?: boolean;
  agentId?: string;
  data: any; // eslint-disable-line: the fields differ for each kind, and readers ignore what they do not know
}

/** An event with its position in the log of its session. Pieces of an answer have none. */
export interface Stored { seq: number; event: Event; hash?: string; size: number }

export interface Offer { id: string; label: string; grants?: object[] }

export const questionKinds: Record<string, string> = {
  "permission.requested": "permission.completed",
  "user_input.requested": "user_input.completed",
  "elicitation.requested": "elicitation.completed",
  "exit_plan_mode.requested": "exit_plan_mode.completed",
  "external_tool.requested": "external_tool.completed",
};

export function time(e: { timestamp: string }): number { return Date.parse(e.timestamp); }

export function text(v: unknown): string {
  return typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v, null, 2);
}
