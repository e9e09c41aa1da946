/** The smallest real picture and sound: one red pixel, and eight samples of silence. */

/** A PNG of one pixel, as base64. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC'

/** A WAV of silence, as bytes. */
export function silence(samples = 8, rate = 8_000): Uint8Array {
  const header = 44
  const bytes = new Uint8Array(header + samples)
  const view = new DataView(bytes.buffer)
  const word = (at: number, text: string): void => {
    for (let index = 0; index < text.length; index++) view.setUint8(at + index, text.charCodeAt(index))
  }
  word(0, 'RIFF')
  view.setUint32(4, header - 8 + samples, true)
  word(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, rate, true)
  view.setUint32(28, rate, true)
  view.setUint16(32, 1, true)
  view.setUint16(34, 8, true)
  word(36, 'data')
  view.setUint32(40, samples, true)
  // Eight-bit samples are unsigned, so silence lies in the middle.
  bytes.fill(128, header)
  return bytes
}
