/** What a validation found, in one form whichever library looked. */
import { clip, echoLength } from '../../jsonrpc/limits.ts'

/** The most issues that one validation reports. */
export const maxIssues = 5

/** Room for a library's own words around a clipped value. */
const messageLength = 120

export interface Issue {
  /** `address.street`, `items[0].name`; empty for the whole value. */
  readonly path: string
  /** What would be right. */
  readonly message: string
}

export type Validation<T = unknown> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

/** `title: must be string; count: is required` */
export function issueText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')
}

/** Names and messages may carry foreign text: both are clipped here, once for all validators. */
export function makeIssue(segments: readonly PropertyKey[], message: string): Issue {
  const path = clip(pathText(segments))
  // Some libraries begin their sentence with the path that stands before it already.
  const said = path !== '' && message.startsWith(`${path} `) ? message.slice(path.length + 1) : message
  const echoed = said.length > echoLength ? said.slice(0, 1_000).replace(quoted, run => clip(run)) : said
  return { path, message: clip(echoed, messageLength) }
}

/** What a library quotes is foreign text, unlike its own words around it. */
const quoted = new RegExp(`(["'\`])(?:(?!\\1).){${echoLength - 1},}(?:\\1|$)`, 'gs')

function pathText(segments: readonly PropertyKey[]): string {
  let text = ''
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`
    else text += text === '' ? String(segment) : `.${String(segment)}`
  }
  return text
}

/** The segments of a JSON Pointer (RFC 6901); digits are taken for positions in an array. */
export function pointerSegments(pointer: string): PropertyKey[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map(part => (/^(0|[1-9]\d*)$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
}
