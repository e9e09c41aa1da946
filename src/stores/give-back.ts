/** Memory that comes back at once, instead of when the collector finds it: large chunks are so many that it would come late. */

/** For whoever alone has a chunk, and is through with it. What shares its memory with others is left to the collector. */
export function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
