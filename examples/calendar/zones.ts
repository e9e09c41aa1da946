/** Times on a wall and moments in the world. A wall time is written as `2026-01-23T10:30:00`, and means something only with a zone. */

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known !== undefined) return known
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    era: 'narrow',
    ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' },
  })
  formats.set(zone, made)
  return made
}

export function isZone(zone: string): boolean {
  try {
    formatOf(zone)
    return true
  } catch {
    return false
  }
}

/** What a clock in the zone shows at a moment. */
export function wallAt(moment: number, zone: string): string {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(moment)
      .map(({ type, value }) => [type, value]),
  )
  const [year = '', month, day, hour, minute, second] = (['year', 'month', 'day', 'hour', 'minute', 'second'] as const).map(
    type => parts.get(type),
  )
  return `${year.padStart(4, '0')}-${month}-${day}T${hour}:${minute}:${second}`
}

/** The wall time as if it were that of UTC: for counting days. */
export const plain = (wall: string): number => Date.parse(`${wall}Z`)
export const wallOf = (value: number): string => new Date(value).toISOString().slice(0, 19)

const day = 86_400_000

/**
 * When a clock in the zone shows that time. Of two such moments, as at the end of summer time, it is the first; where there is none, as at
 * its beginning, the clock is taken to go on as before (RFC 5545 §3.3.5).
 */
export function momentOf(wall: string, zone: string): number {
  const value = plain(wall)
  const offsets = [value - day, value + day].map(near => plain(wallAt(near, zone)) - near)
  const [before = 0] = offsets
  const found = offsets.map(offset => value - offset).filter(moment => wallAt(moment, zone) === wall)
  return found.length === 0 ? value - before : Math.min(...found)
}
