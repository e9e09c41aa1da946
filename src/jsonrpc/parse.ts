/**
 * Frame → value, once, with depth and element limits that hold before any recursive code sees the value.
 * The limits cost nothing on small frames: a frame too short to break them is not looked at.
 */
import { McpError } from './error.ts'
import { clip, type FrameLimits, frameLimits } from './limits.ts'

export function parse(text: string, limits: FrameLimits = frameLimits): unknown {
  // Nesting d levels takes at least 2·d characters, and two elements (`[],`) at least 3: shorter frames cannot exceed the limits.
  if (text.length > 2 * limits.depth && mayBeDeep(text, limits.depth)) scan(text, limits)
  else if (text.length > 1.5 * limits.elements) scan(text, limits)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new McpError('parse', `Not JSON: ${clip(firstLine(cause))}. Send one JSON-RPC message as UTF-8 JSON text`, { cause })
  }
}

/** Counts opening brackets natively, stopping just above the limit; brackets inside strings count too, so this may only over-estimate. */
function mayBeDeep(text: string, depth: number): boolean {
  let count = 0
  for (let at = text.indexOf('{'); at !== -1; at = text.indexOf('{', at + 1)) if (++count > depth) return true
  for (let at = text.indexOf('['); at !== -1; at = text.indexOf('[', at + 1)) if (++count > depth) return true
  return false
}

const quote = 0x22
const backslash = 0x5c

/** One pass without recursion over structure only; strings are skipped natively from quote to quote. */
function scan(text: string, limits: FrameLimits): void {
  let depth = 0
  let elements = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > limits.depth) throw tooMuch(`is nested deeper than ${limits.depth} levels`, 'depth')
      elements++
    } else if (code === 0x7d || code === 0x5d) depth--
    else if (code === 0x2c) elements++
    if (elements > limits.elements) throw tooMuch(`has more than ${limits.elements} elements`, 'elements')
  }
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return at
  }
  return text.length
}

function tooMuch(what: string, limit: keyof FrameLimits): McpError {
  return new McpError('invalid-request', `The message ${what}, which is this peer's limit (${limit}). Send less, or in parts`)
}

function firstLine(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  // The engine's own text quotes the input after the first comma or quote; only its reason is of use.
  return message.split('\n', 1)[0]?.replace(/,? *(\.\.\.)?".*$/s, '') ?? ''
}
