/** Content-Type and Accept by parsed media type: a substring match would let a browser form through as JSON. */

/** Bits of what a caller takes. */
export const takesJson = 1
export const takesStream = 2

/** True for `application/json`, alone or with a UTF-8 charset. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  if (contentType === undefined) return false
  const [type, ...parameters] = contentType.toLowerCase().split(';')
  return type?.trim() === 'application/json' && parameters.every(isHarmless)
}

function isHarmless(parameter: string): boolean {
  const [name, value] = parameter.split('=')
  return name?.trim() !== 'charset' || /^"?utf-?8"?$/.test(value?.trim() ?? '')
}

/** Which of JSON and event streams the Accept header lets through; without one, both. */
export function takes(accept: string | undefined): number {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return takesJson | takesStream
  const ranges = accept.toLowerCase().split(',').map(readRange)
  return (admits(ranges, 'application', 'json') ? takesJson : 0) | (admits(ranges, 'text', 'event-stream') ? takesStream : 0)
}

interface Range {
  readonly type: string
  readonly weight: number
}

function readRange(text: string): Range {
  const [type, ...parameters] = text.split(';')
  const quality = parameters.map(part => part.trim()).find(part => part.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice(2))
  return { type: type?.trim() ?? '', weight: Number.isNaN(weight) ? 0 : weight }
}

/** The most specific range decides (RFC 9110 §12.5.1), so that a wildcard does not undo an exclusion. */
function admits(ranges: readonly Range[], type: string, subtype: string): boolean {
  for (const name of [`${type}/${subtype}`, `${type}/*`, '*/*']) {
    const range = ranges.find(candidate => candidate.type === name)
    if (range !== undefined) return range.weight > 0
  }
  return false
}
