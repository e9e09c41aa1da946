/** The `Range` header, as far as one part goes (RFC 9110 §14). */

/** From `start` up to, not including, `end`. */
export interface Part {
  readonly start: number
  readonly end: number
}

/** Undefined: the whole content, also for several parts or what is not understood. `none`: nothing of it is there. */
export function partOf(range: string | undefined, size: number): Part | 'none' | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(range?.trim() ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'none' : { start: size - length, end: size }
  }
  const start = Number(first)
  const end = last === '' ? size : Math.min(Number(last) + 1, size)
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'none' : { start, end }
}
