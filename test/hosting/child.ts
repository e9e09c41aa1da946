/** A server to be started by a host: says what it was given, and can be made to die. */
import { spawn } from 'node:child_process'
import { createServer } from '../../src/server/index.ts'

const server = createServer({ name: process.env['NAME'] ?? 'child', version: '1.0.0' })
const text = { type: 'object', properties: { name: { type: 'string' } } } as const
server.tool('pid', {}, () => String(process.pid))
server.tool('env', { input: text }, ({ name }) => process.env[String(name)] ?? '(nothing)')
server.tool('args', {}, () => JSON.stringify(process.argv.slice(2)))
server.tool('spawn', {}, () => String(spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' }).pid))
server.tool('die', {}, () => process.exit(3))
await server.stdio()
