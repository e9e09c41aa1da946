/** E12-4: the reference server as a process. */
import { fileURLToPath } from 'node:url'
import { it } from 'vitest'
import { compiledOnce } from '../compiled-once.ts'
import { expectWhole, patience } from './whole-reference.ts'

const program = fileURLToPath(new URL('../../examples/reference/server.ts', import.meta.url))

it('E12-4: passes every scenario of the extensions and of MCP Live on stdio', patience, async () => {
  await expectWhole({ stdio: { command: process.execPath, args: [program, '--stdio'], env: compiledOnce } })
})
