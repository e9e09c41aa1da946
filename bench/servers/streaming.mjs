/** Twenty chunks, one every few milliseconds: `vivarium`, by a tool that is a generator, or `floor`, by plain chunked HTTP. */
import { createServer as createHttpServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { createServer } from 'vivarium/server'
import { announce } from './ready.mjs'

const [kind, chunks, pauseMs] = process.argv.slice(2)

async function* pieces() {
  for (let at = 0; at < Number(chunks); at++) {
    if (at > 0) await wait(Number(pauseMs))
    yield `chunk ${at} of what is being worked out\n`
  }
}

if (kind === 'floor') {
  const http = createHttpServer(async (req, res) => {
    for await (const _ of req);
    res.writeHead(200, { 'content-type': 'text/plain' })
    for await (const piece of pieces()) res.write(piece)
    res.end()
  })
  http.listen(0, '127.0.0.1', () => announce(http.address().port))
} else {
  const server = createServer({ name: 'bench', version: '1.0.0', limits: { rates: false } })
  server.tool('work', {}, async function* () {
    yield* pieces()
  })
  const { url } = await server.listen({ port: 0, host: '127.0.0.1' })
  announce(Number(new URL(url).port))
}
