/** A server whose one tool runs as a task and ends at once: what is left is the cost of the task itself. */
import { createServer } from 'vivarium/server'
import { announce } from './ready.mjs'

const server = createServer({ name: 'bench', version: '1.0.0', limits: { rates: false } })
server.tool('work', { task: 'optional' }, () => 'done')
const { url } = await server.listen({ port: 0, host: '127.0.0.1' })
announce(Number(new URL(url).port))
