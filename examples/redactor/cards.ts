/** Numbers of payment cards: 13 to 19 digits, perhaps in groups, whose last digit proves the others (ISO/IEC 7812, "Luhn"). */

export interface Found {
  readonly from: number
  readonly to: number
}

interface Group {
  readonly from: number
  readonly digits: string
}

/** From left to right. A card may stand among other groups of digits: every row of groups is tried, the longest first. */
export function cardsIn(text: string): readonly Found[] {
  const found: Found[] = []
  for (const run of text.matchAll(/\d+(?:[ -]\d+)*/g)) {
    const groups = [...run[0].matchAll(/\d+/g)].map(({ 0: digits, index }) => ({ from: run.index + index, digits }))
    for (let at = 0; at < groups.length; ) {
      const length = cardAt(groups, at)
      const last = groups[at + length - 1]
      if (length > 0 && last !== undefined) found.push({ from: groups[at]?.from ?? 0, to: last.from + last.digits.length })
      at += Math.max(length, 1)
    }
  }
  return found
}

/** How many groups from here on are one card; 0 where none is. */
function cardAt(groups: readonly Group[], at: number): number {
  if (!/^[2-6]/.test(groups[at]?.digits ?? '')) return 0
  let digits = ''
  let best = 0
  for (let next = at; next < groups.length; next++) {
    digits += groups[next]?.digits ?? ''
    if (digits.length > 19) break
    if (digits.length >= 13 && passesLuhn(digits)) best = next - at + 1
  }
  return best
}

export function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits[digits.length - 1 - at])
    const doubled = at % 2 === 0 ? digit : digit * 2
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
