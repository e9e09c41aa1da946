/**
 * Frame → value, once, with depth, element and name limits that hold before any recursive code sees the value.
 * The limits cost nothing on small frames: a frame too short to break them is not looked at.
 */
import { McpError } from './error.ts'
import { clip, type FrameLimits, frameLimits } from './limits.ts'
import { mayExceed, scan } from './scan.ts'

export function parse(text: string, limits: FrameLimits = frameLimits): unknown {
  if (mayExceed(text, limits)) scan(text, limits)
  return readJson(text)
}

/** Without limits: for text that was held against them before. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new McpError('parse', `Not JSON: ${clip(firstLine(cause))}. Send one JSON-RPC message as UTF-8 JSON text`, { cause })
  }
}

function firstLine(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  // The engine's own text quotes the input after the first comma or quote; only its reason is of use.
  return message.split('\n', 1)[0]?.replace(/,? *(\.\.\.)?".*$/s, '') ?? ''
}
