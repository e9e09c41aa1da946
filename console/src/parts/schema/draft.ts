/** What stands in the editor of arguments, and how it changes between form and JSON. */
import { readText, Typed, writeText } from './typed.ts'

/** What stands in the editor. */
export interface Draft {
  readonly mode: 'form' | 'json'
  /** JSON, with `Typed` where something else was typed. */
  readonly value: unknown
  /** The text of the JSON mode, as it was typed. */
  readonly text: string
}

/** A draft of a value. */
export function draftOf(value: unknown, mode: Draft['mode'] = 'form'): Draft {
  return { mode, value, text: writeText(value) }
}

/** The draft in the other mode. A text that is no JSON stays where it is. */
export function turned({ mode, value, text }: Draft): Draft {
  // A text that means the same value keeps its line breaks and spaces.
  if (mode === 'form')
    return { mode: 'json', value, text: writeText(readText(text)) === writeText(value) ? text : writeText(value) }
  return value instanceof Typed ? { mode, value, text } : { mode: 'form', value, text }
}
