/** The floor over stdio: chunks in, lines parsed, one write per chunk read. */
import { createFloor } from './floor.mjs'

const NEWLINE = 10
const answer = createFloor(process.argv[2])
let held = []

process.stdin.on('data', chunk => {
  const last = chunk.lastIndexOf(NEWLINE)
  if (last === -1) {
    held.push(chunk)
    return
  }
  let ready = chunk
  let end = last
  if (held.length > 0) {
    held.push(chunk)
    ready = Buffer.concat(held)
    end += ready.length - chunk.length
    held = []
  }
  // Decoded once per chunk, always at a line end, so no character is ever cut in two.
  let out = ''
  for (const line of ready.utf8Slice(0, end).split('\n')) {
    const response = answer(JSON.parse(line))
    if (response !== undefined) out += `${JSON.stringify(response)}\n`
  }
  if (end + 1 < ready.length) held.push(ready.subarray(end + 1))
  if (out !== '') process.stdout.write(out)
})
