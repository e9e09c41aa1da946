/**
 * Reads TypeScript as text, as far as the checks need it (TypeScript 7 has no compiler API): where comments and strings
 * are, and what a file imports.
 */

/** The source with the inside of comments, strings and regular expressions blanked; every offset and line break stays. */
export function maskLiterals(source: string): string {
  const out = source.split('')
  const blank = (from: number, to: number) => {
    for (let i = from; i < to; i++) if (out[i] !== '\n') out[i] = ' '
  }
  const braces: ('block' | 'template')[] = []
  let at = 0
  const template = () => {
    const end = templateEnd(source, at)
    blank(at, end.at)
    at = end.at + end.width
    if (end.opens) braces.push('template')
  }
  while (at < source.length) {
    const rest = source.slice(at, at + 2)
    const char = rest.charAt(0)
    if (rest === '//' || rest === '/*') {
      const end = rest === '//' ? indexOr(source, '\n', at) : indexOr(source, '*/', at + 2) + 2
      blank(at, end)
      at = end
    } else if (char === '"' || char === "'") {
      const end = quoteEnd(source, at + 1, char)
      blank(at + 1, end)
      at = end + 1
    } else if (char === '/' && startsRegExp(out, at)) {
      const end = regExpEnd(source, at + 1)
      blank(at + 1, end)
      at = end + 1
    } else {
      at++
      if (char === '{') braces.push('block')
      if (char === '`' || (char === '}' && braces.pop() === 'template')) template()
    }
  }
  return out.join('')
}

function indexOr(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from)
  return found < 0 ? source.length : found
}

function quoteEnd(source: string, from: number, quote: string): number {
  for (let i = from; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === quote || source[i] === '\n') return i
  }
  return source.length
}

/** Where a template's text stops: at its closing backtick, or at a `${` that opens code. */
function templateEnd(source: string, from: number): { at: number; width: number; opens: boolean } {
  for (let i = from; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === '`') return { at: i, width: 1, opens: false }
    else if (source[i] === '$' && source[i + 1] === '{') return { at: i, width: 2, opens: true }
  }
  return { at: source.length, width: 0, opens: false }
}

/** A slash starts a regular expression where no value can have ended: after an operator, an opening bracket or a keyword. */
function startsRegExp(masked: readonly string[], at: number): boolean {
  const before = masked
    .slice(Math.max(0, at - 40), at)
    .join('')
    .trimEnd()
  if (before === '') return true
  return /[=(,:;!&|?{}[+\-*%<>~^]$/.test(before) || /\b(return|typeof|case|of|in|do|else|void|yield|await|throw)$/.test(before)
}

function regExpEnd(source: string, from: number): number {
  let inClass = false
  for (let i = from; i < source.length; i++) {
    const char = source[i]
    if (char === '\\') i++
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '\n' || (char === '/' && !inClass)) return i
  }
  return source.length
}

export interface Import {
  readonly line: number
  /** The module as written; undefined for an `import()` whose name is computed. */
  readonly specifier: string | undefined
  /** Whether it is an `import()`: loaded when it is used. */
  readonly lazy: boolean
}

const STATIC = /(?<![\w$.])(?:import|export)\b(?!\s*[(.])(?:(?!\b(?:import|export)\b)[^'"`;=()])*['"]/g
const DYNAMIC = /(?<![\w$.])import\s*\(\s*/g

/** Every module a file names: `import`, `import type`, `export … from`, `import()`, also in type positions. */
export function readImports(source: string): Import[] {
  const masked = maskLiterals(source)
  const found: Import[] = []
  const add = (start: number, quoteAt: number, lazy: boolean) => {
    const quote = masked[quoteAt]
    const literal = quote === "'" || quote === '"' || quote === '`'
    const end = literal ? masked.indexOf(quote, quoteAt + 1) : -1
    const specifier = end < 0 ? undefined : source.slice(quoteAt + 1, end)
    found.push({ line: lineAt(source, start), specifier: specifier?.includes('${') ? undefined : specifier, lazy })
  }
  for (const match of masked.matchAll(STATIC)) {
    if (/\bfrom\s*['"]$|^import\s*['"]$/.test(match[0])) add(match.index, match.index + match[0].length - 1, false)
  }
  for (const match of masked.matchAll(DYNAMIC)) add(match.index, match.index + match[0].length, true)
  return found.sort((a, b) => a.line - b.line)
}

export function lineAt(source: string, offset: number): number {
  let line = 1
  for (let i = source.indexOf('\n'); i >= 0 && i < offset; i = source.indexOf('\n', i + 1)) line++
  return line
}
