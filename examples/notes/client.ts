/** Starts the notes server, uses all that it offers, and checks what comes back. Ends with 0 when everything was right. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { connect } from 'vivarium/client'
import { z } from 'zod'

const asked: string[] = []
await using mcp = await connect(
  { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'server.ts')] },
  {
    onElicit: ({ message }) => {
      asked.push(message)
      return { action: 'accept', content: { confirm: true } }
    },
  },
)
assert.match(mcp.instructions ?? '', /write_note/)

const tools: string[] = []
for await (const { name } of mcp.tools()) tools.push(name)
assert.deepEqual(tools.sort(), ['delete_note', 'extend_note', 'find_notes', 'write_note'])

const updates = mcp.resourceUpdates('note://shopping')
const updated = updates.next()
const written = await mcp.callTool(
  'write_note',
  { name: 'shopping', text: 'Bread and honey' },
  { output: z.object({ uri: z.string(), replaced: z.boolean() }) },
)
assert(!written.isError)
assert.deepEqual(written.structured, { uri: 'note://shopping', replaced: false })
assert.deepEqual(await updated, { done: false, value: 'note://shopping' })
await updates.return()

const found = await mcp.callTool('find_notes', { text: 'honey' })
assert.deepEqual(found.structured, { names: ['shopping'] })

const resources: string[] = []
for await (const { uri } of mcp.resources()) resources.push(uri)
assert.deepEqual(resources, ['note://shopping'])
const { contents } = await mcp.readResource('note://shopping')
assert.partialDeepStrictEqual(contents[0], { text: 'Bread and honey' })

const { messages } = await mcp.getPrompt('summarise', { name: 'shopping' })
assert.match(JSON.stringify(messages[0]?.content), /Bread and honey/)

const wrong = await mcp.callTool('write_note', { name: 'No Such Name!', text: '' })
assert(wrong.isError)
assert.match(wrong.text, /name/)

assert.equal((await mcp.callTool('delete_note', { name: 'shopping' })).text, 'Deleted')
assert.deepEqual(asked, ['Delete shopping?'])
const gone = await mcp.callTool('delete_note', { name: 'shopping' })
assert.match(gone.text, /find_notes/)

console.log(`All checks passed at ${mcp.revision}`)
