/** What a module exports, read from its text: named exports only, values apart from types. */
import { lineAt, maskLiterals } from './source.ts'

export interface Exports {
  readonly values: string[]
  readonly types: string[]
  /** Lines with an `export *`, whose names cannot be seen here. */
  readonly stars: number[]
}

const LIST = /\bexport\s+(type\s+)?\{([^}]*)\}/g
const DECLARATION =
  /\bexport\s+(?:declare\s+)?(?:(?:async\s+)?function\s*\*?|const|let|(?:abstract\s+)?class|(interface|type))\s+([A-Za-z_$][\w$]*)/g
const STAR = /\bexport\s+(?:type\s+)?\*/g

export function readExports(source: string): Exports {
  const masked = maskLiterals(source)
  const values = new Set<string>()
  const types = new Set<string>()
  for (const [, allTypes, inside = ''] of masked.matchAll(LIST)) {
    for (const item of inside
      .split(',')
      .map(text => text.trim())
      .filter(Boolean)) {
      const [, type, name] = /^(type\s+)?(?:.*\sas\s+)?(\S+)$/s.exec(item) ?? []
      if (name) (allTypes || type ? types : values).add(name)
    }
  }
  for (const [, type, name] of masked.matchAll(DECLARATION)) if (name) (type ? types : values).add(name)
  return {
    values: [...values].sort(),
    types: [...types].sort(),
    stars: [...masked.matchAll(STAR)].map(match => lineAt(source, match.index)),
  }
}
