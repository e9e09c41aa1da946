/** What a recording does not keep: headers that hold secrets, and the members that its maker names. */
import { isSecretName, redacted } from '../core/redact.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { type Path, type PathPattern, pathPattern } from './paths.ts'

/** Takes out what is not to be written down. */
interface Redaction {
  headers(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  /** The same text where nothing is to be taken out. */
  frame(text: string): string
  /** The members of a line that holds no frame; paths begin at the line itself. */
  members<T extends object>(line: T): T
}

/** `members`: paths such as `params.arguments.password` or `**.apiKey`. */
export function redaction(members: readonly string[] = []): Redaction {
  const patterns = members.map(pathPattern)
  return {
    headers: headers =>
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSecretName(name) ? redacted : value])),
    frame: text => (patterns.length === 0 ? text : redactedFrame(text, patterns)),
    members: line => (patterns.length === 0 ? line : (without(line, [], patterns.map(inner), { any: false }) as typeof line)),
  }
}

/** A line keeps its own members, so that it can still be read: what is inside of them is taken out. */
function inner(matches: PathPattern): PathPattern {
  return path => path.length > 1 && matches(path)
}

/** What is no JSON has no members, and may hold anything: of that only its length is kept. */
function redactedFrame(text: string, patterns: readonly PathPattern[]): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return `${redacted} (${text.length} characters that are no JSON)`
  }
  const found = { any: false }
  const put = without(value, [], patterns, found)
  return found.any ? JSON.stringify(put) : text
}

function without(value: unknown, path: Path, patterns: readonly PathPattern[], found: { any: boolean }): unknown {
  if (path.length > 0 && patterns.some(matches => matches(path))) {
    found.any = true
    return redacted
  }
  if (Array.isArray(value)) {
    // A batch is several frames, and each begins at itself.
    const inner = (at: number): Path => (path.length === 0 ? [] : [...path, String(at)])
    return value.map((item, at) => without(item, inner(at), patterns, found))
  }
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, without(item, [...path, name], patterns, found)]))
}
