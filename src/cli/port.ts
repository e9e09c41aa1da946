/** Ports, as they are typed. */
import { clip } from '../jsonrpc/limits.ts'

export function portOf(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new TypeError(`${clip(text)} is no port`)
}
