/** A request prepared as bytes: the id and the stamp are overwritten in place, nothing else is built per request. */
import { envelope, FIRST_ID, ID_DIGITS, type Revision, STAMP_MARK, type Work } from '../work.ts'

export class Template {
  readonly bytes: Buffer
  readonly #places: number[]

  /** `head` goes before the JSON (HTTP headers for a body of the given length), `tail` after it (the newline of a line). */
  constructor(work: Work, revision: Revision, head: (length: number) => string, tail: string) {
    const json = Buffer.from(JSON.stringify(envelope(revision, FIRST_ID, work.method, work.params(STAMP_MARK + FIRST_ID))))
    this.bytes = Buffer.concat([Buffer.from(head(json.length)), json, Buffer.from(tail)])
    this.#places = [this.bytes.indexOf(`"id":${FIRST_ID}`) + '"id":'.length]
    const stamp = this.bytes.indexOf(STAMP_MARK + FIRST_ID)
    if (stamp >= 0) this.#places.push(stamp + STAMP_MARK.length)
  }

  /** Writes the id into `target`, which holds a copy of the bytes from `offset` on. */
  stamp(target: Buffer, offset: number, id: number): void {
    for (const place of this.#places) {
      let rest = id
      for (let index = offset + place + ID_DIGITS - 1; index >= offset + place; index--) {
        target[index] = 48 + (rest % 10)
        rest = Math.floor(rest / 10)
      }
    }
  }
}
