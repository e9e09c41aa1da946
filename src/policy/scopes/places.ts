/** The places that the payload of a scope names: a label is what the server says of it, the payload is what it will act on. */
import { isRecord } from '../../jsonrpc/message.ts'

/** Members whose text is a place, also where it does not look like one. */
const placeName = /path|file|dir|folder|uri|url|href|cwd|root|dest/i
const most = 1_000
const depth = 16

interface Places {
  /** Every text in it, names of members too. */
  readonly texts: readonly string[]
  /** Those that are places. */
  readonly places: readonly string[]
  /** Not all was looked at: there is more of it than anybody reads. */
  readonly cut: boolean
}

export function scopePlacesIn(payload: unknown): Places {
  const texts: string[] = []
  const places: string[] = []
  let cut = false
  const walk = (value: unknown, name: string, level: number): void => {
    if (texts.length >= most || level > depth) {
      cut = true
      return
    }
    if (typeof value === 'string') {
      texts.push(value)
      if (placeName.test(name) || looksLikePlace(value)) places.push(value)
    } else if (Array.isArray(value)) for (const item of value) walk(item, name, level + 1)
    else if (isRecord(value))
      for (const [key, member] of Object.entries(value)) {
        walk(key, '', level + 1)
        walk(member, key, level + 1)
      }
  }
  walk(payload, '', 0)
  return { texts, places, cut }
}

function looksLikePlace(text: string): boolean {
  return /[/\\]|^[.~]|%2f|%5c|%2e|\0/i.test(text) || /[\u2044\u2215\u29f8\u2571\uff0f\uff3c\u2024\uff0e]/u.test(text)
}
