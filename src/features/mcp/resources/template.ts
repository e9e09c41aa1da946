/**
 * URI templates (RFC 6570, all four levels): read, expanded, and matched back against URIs.
 * Expansion is the RFC's; matching is ours, since the RFC leaves it open, and is kept linear and free of guessing.
 */
import { createMatcher, expandParts, type TemplateMatch, type TemplateValues } from './template-match.ts'
import { type Part, readParts } from './template-parts.ts'

export type { TemplateMatch, TemplateValue, TemplateValues } from './template-match.ts'

export interface Template {
  /** As it was written. */
  readonly text: string
  /** The names in the order of their first appearance. */
  readonly variables: readonly string[]
  /** Variables that are undefined (or empty lists) are left out, as the RFC says. */
  expand(values: TemplateValues): string
  /**
   * The values with which `uri` could have been written, percent-decoded; undefined if there are none.
   * `{a}` and `{+a}` need at least one character; the other operators may be absent, and then so are their variables.
   * A variable with `*` gives a list, any other a text. Where several divisions are possible, earlier variables take the longest.
   */
  match(uri: string): TemplateMatch | undefined
}

/**
 * Reads a template to be matched as well as expanded. Throws when it is no template, and when URIs could not be told apart by it.
 *
 * @example
 * const ticket = parseTemplate('ticket://{project}/{id}')
 * ticket.match('ticket://home/42') // { project: 'home', id: '42' }
 */
export function parseTemplate(text: string): Template {
  const parts = readParts(text)
  const match = createMatcher(text, parts)
  return { text, variables: variablesOf(parts), expand: values => expandParts(parts, values), match }
}

/** Expands any template of the RFC, also one that could not be matched: for templates that come from others. */
export function expandTemplate(text: string, values: TemplateValues): string {
  return expandParts(readParts(text), values)
}

function variablesOf(parts: readonly Part[]): string[] {
  return [...new Set(parts.flatMap(part => (typeof part === 'string' ? [] : part.variables.map(({ name }) => name))))]
}
