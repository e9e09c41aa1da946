/**
 * Five steps that belong together, of which the last one fails. The server is killed while it takes the others back, and started
 * again: it goes on by itself, and the report says what became of each step.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type TransactionReport } from 'vivarium/client'
import { z } from 'zod'

const folder = mkdtempSync(join(tmpdir(), 'tickets-'))
const running = new Set<ChildProcess>()

async function start(...more: string[]) {
  const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'server.ts'), folder, ...more]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  running.add(child)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  return { url: await next(), next, child }
}

async function kill(child: ChildProcess): Promise<void> {
  running.delete(child)
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** Runs the steps; gives the id of their transaction once the server hangs in the midst of taking them back. */
async function untilTheCrash(): Promise<string> {
  const { url, next, child } = await start('delete_ticket')
  const mcp = await connect(url, { retry: false })
  const created = { output: z.object({ id: z.string() }) }
  // What cannot be undone comes last, so that nothing has to be taken back after it.
  const tx = await mcp.transaction({ description: 'Split T-1 in two', timeout: '1m', irreversible: true })
  const one = await tx.callTool('create_ticket', { title: 'Login fails' }, created)
  const two = await tx.callTool('create_ticket', { title: 'Login is slow' }, created)
  if (one.isError || two.isError) throw new Error('The tickets could not be created')
  await tx.callTool('link_tickets', { from: one.structured.id, to: two.structured.id })
  await tx.callTool('update_ticket', { id: one.structured.id, title: 'Login fails at night' })
  const told = await tx.callTool('notify', { text: 'There are two now' })
  console.log(`Step 5 failed: ${told.text}`)
  const lost = tx.rollback('The team could not be told').catch(() => undefined)
  if ((await next()) !== 'stuck') throw new Error('The server did not get stuck')
  await kill(child)
  await lost
  await mcp.close().catch(() => undefined)
  console.log('The server was killed in the midst of the rollback')
  return tx.id
}

async function afterTheRestart(id: string): Promise<TransactionReport> {
  const { url, child } = await start()
  const mcp = await connect(url)
  let report = await mcp.transactionStatus(id)
  while (report.status === 'rolling_back') {
    await wait(100)
    report = await mcp.transactionStatus(id)
  }
  await mcp.close()
  await kill(child)
  return report
}

try {
  const report = await afterTheRestart(await untilTheCrash())
  console.log(`The transaction is ${report.status}: ${report.reason}`)
  for (const { id, tool, status } of report.steps) console.log(`  ${id} ${tool}: ${status}`)
  const { tickets, links } = JSON.parse(readFileSync(join(folder, 'tickets.json'), 'utf8'))
  console.log(`Left behind: ${Object.keys(tickets).length} tickets, ${links.length} links`)
} finally {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
