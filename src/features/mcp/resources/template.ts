/**
 * URI templates (RFC 6570, all four levels): read, expanded, and matched back against URIs.
 * Expansion is the RFC's; matching is ours, since the RFC leaves it open, and is kept linear and free of guessing.
 */
import { createMatcher, expandParts, type Part, readParts, type TemplateMatch, type TemplateValues } from './template-match.ts'

export type { TemplateMatch, TemplateValue, TemplateValues } from './template-match.ts'

/** A URI template, ready to match and to expand. */
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

/** The variables of any template of the RFC, also one that could not be matched. */
export function templateVariables(text: string): readonly string[] {
  return variablesOf(readParts(text))
}

function variablesOf(parts: readonly Part[]): string[] {
  return [...new Set(parts.flatMap(part => (typeof part === 'string' ? [] : part.variables.map(({ name }) => name))))]
}

// The variables of a URI template as types, so that a handler's first argument is known from the text of the template.

type Operator = '+' | '#' | '.' | '/' | ';' | '?' | '&'

/** An expression of a URI template: what is between two braces. */
type Expression<T extends string> = T extends `${string}{${infer Inside}}${infer Rest}` ? Inside | Expression<Rest> : never

/** An expression without its operator. */
type Bare<E extends string> = E extends `${Operator}${infer Specs}` ? Specs : E
/** The variables of an expression. */
type Spec<List extends string> = List extends `${infer Head},${infer Tail}` ? Head | Spec<Tail> : List
/** The first variable of an expression. */
type FirstSpec<List extends string> = List extends `${infer Head},${string}` ? Head : List

/** The variables that are always present: those of `{a}` and `{+a}`. Others may be missing. */
type Certain<E extends string> = E extends `${Exclude<Operator, '+'>}${string}` ? never : FirstSpec<Bare<E>>

/** The name of a variable without its modifier. */
type NameOf<S extends string> = S extends `${infer Name}*` ? Name : S extends `${infer Name}:${string}` ? Name : S
/** The type of a variable: a list with the modifier `*`, else text. */
type ValueOf<S extends string> = S extends `${string}*` ? readonly string[] : string

/** The variables of a URI template that a handler gets. */
export type TemplateVariables<T extends string> = string extends T
  ? Readonly<Record<string, string | readonly string[]>>
  : { readonly [S in Certain<Expression<T>> as NameOf<S>]: ValueOf<S> } & {
      readonly [S in Spec<Bare<Expression<T>>> as NameOf<S>]?: ValueOf<S>
    }

/** The names of the variables of a URI template. */
export type VariableName<T extends string> = string extends T ? string : NameOf<Spec<Bare<Expression<T>>>>
