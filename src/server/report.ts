/** Where a server tells its author what went wrong when nobody asked to be told: standard error, which no protocol uses. */
import { McpError } from '../jsonrpc/error.ts'

/** Events that mean a mistake in the author's own code; the others are for those who trace. */
const mistakes = new Set(['internal', 'tool-failed', 'notification-failed'])

export function reportMistakes(event: string, detail: unknown): void {
  if (!mistakes.has(event)) return
  const { tool, error = detail } = (detail ?? {}) as { tool?: string; error?: unknown }
  // What came from the other side of a question, or was thrown on purpose, is no mistake.
  if (error instanceof McpError && error.cause === undefined) return
  // biome-ignore lint/suspicious/noConsole: this is the one place that speaks to the author
  console.error(`vivarium: ${event}${tool === undefined ? '' : ` in ${tool}`}: ${plain(error)}`)
}

/** With its stack, but without what could move a terminal's cursor: part of it may have come from a caller. */
function plain(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return text.slice(0, 10_000).replace(/[^\P{Cc}\n\t]/gu, '\ufffd')
}
