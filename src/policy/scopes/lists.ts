/**
 * Whitelist and blacklist of a feature set (MCP Live 0.2 §7.6), held against the label and against every place in the payload.
 * What is forbidden is forbidden in every spelling and every case; what is allowed must be spelled plainly.
 */

import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { glob, globLength } from './glob.ts'
import { scopePlacesIn } from './places.ts'
import { folded } from './readings.ts'
import { placeLength, spell } from './spelling.ts'

type ScopeVerdict =
  | { readonly is: 'forbidden'; readonly pattern: string; readonly text: string }
  | { readonly is: 'allowed'; readonly pattern: string }
  /** Neither: somebody has to be asked. `flaw`: the spelling is unusual, and this is how. */
  | { readonly is: 'open'; readonly flaw: string | undefined }

export interface ScopeJudge {
  readonly lists: ScopeLists
  judge(scope: Scope): ScopeVerdict
}

/** Throws where a pattern is none. */
export function scopeJudge(lists: ScopeLists): ScopeJudge {
  const allows = (lists.whitelist ?? []).map(pattern => ({ pattern: checked(pattern), fits: glob(pattern) }))
  const forbids = (lists.blacklist ?? []).flatMap(pattern =>
    withFolder(folded(checked(pattern))).map(text => ({ pattern, fits: glob(text) })),
  )
  const forbidden = (text: string): ScopeVerdict | undefined => {
    const { readings } = spell(text)
    const hit = forbids.find(({ fits }) => readings.some(fits))
    return hit && { is: 'forbidden', pattern: hit.pattern, text: clip(text) }
  }
  const judge = ({ label, payload }: Scope): ScopeVerdict => {
    const { texts, places, cut } = scopePlacesIn(payload)
    for (const text of [label, ...texts]) {
      const denied = forbidden(text)
      if (denied !== undefined) return denied
    }
    const wanted = [label, ...places]
    const flaw = cut ? 'its payload is too large to be looked at' : firstFlaw([label, ...texts], wanted)
    const by = allows.find(({ fits }) => fits(label))
    const all = by !== undefined && flaw === undefined && wanted.every(text => allows.some(({ fits }) => fits(text)))
    return all ? { is: 'allowed', pattern: by.pattern } : { is: 'open', flaw }
  }
  return { lists, judge }
}

/** Texts that are no places may be spelled as they like, unless nobody could compare them with what is forbidden. */
function firstFlaw(texts: readonly string[], places: readonly string[]): string | undefined {
  for (const place of places) {
    const { flaw } = spell(place)
    if (flaw !== undefined) return `${clip(place)}: ${flaw}`
  }
  return texts.some(text => text.length > placeLength)
    ? `a text of its payload is longer than ${placeLength} characters`
    : undefined
}

/** Who forbids all that lies in a folder forbids the folder. */
function withFolder(pattern: string): readonly string[] {
  return pattern.endsWith('/**') && pattern.length > 3 ? [pattern, pattern.slice(0, -3)] : [pattern]
}

function checked(pattern: string): string {
  if (typeof pattern === 'string' && pattern !== '' && pattern.length <= globLength) return pattern
  throw new TypeError(`${clip(String(pattern))} is no pattern of scopes: give 1 to ${globLength} characters`)
}
