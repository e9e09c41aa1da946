/**
 * Somebody works with the tracker: asks for rights, does five things that belong together of which the last one fails, and loses the
 * server while it takes the others back. Started again, the server goes on by itself, and so does its client. Checks all of it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, classify, connect, type TransactionReport } from 'vivarium/client'
import { z } from 'zod'
import { startTracker } from './process.ts'
import { read } from './tracker.ts'

const folder = mkdtempSync(join(tmpdir(), 'tickets-'))
let tracker = await startTracker(folder, 'delete_ticket')
let answer = false

try {
  const mcp = await connect(tracker.url, {
    // Finds the tracker where it is now, as a load balancer would.
    fetch: (_, init) => fetch(tracker.url, init),
    onConfirm: ({ risk, message }) => {
      console.log(`  ${risk}: ${message} ${answer ? 'Yes' : 'No'}`)
      return answer
    },
  })
  await rights(mcp)
  await board(mcp)
  const id = await work(mcp)
  tracker = await startTracker(folder)
  await afterwards(mcp, id)
  await goingOn(mcp)
  await deleting(mcp)
  await mcp.close()
  console.log('All checks passed')
} finally {
  await tracker.kill()
  rmSync(folder, { recursive: true, force: true })
}

/** Scopes: what a call lacks is named, what is asked for may be granted in part. */
async function rights(mcp: Client): Promise<void> {
  console.log('At first, nothing is allowed')
  const refused = await mcp.callTool('create_ticket', { title: 'Login fails' })
  assert(refused.isError && refused.problem?.code === 'SCOPE_INSUFFICIENT')
  console.log(`  refused: ${refused.problem.message}`)
  const wanted = ['tickets:read', 'tickets:write', 'tickets:admin']
  const { granted, denied } = await mcp.permissions.negotiate(wanted, { justification: 'To split T-1 in two', ttl: '10m' })
  assert.deepEqual(granted, ['tickets:read', 'tickets:write'])
  console.log(`  granted: ${granted.join(', ')}`)
  for (const { scope, reason } of denied) console.log(`  denied: ${scope}, ${reason}`)
  const { allowed, missing } = await mcp.permissions.check('empty_tracker')
  assert.deepEqual({ allowed, missing }, { allowed: false, missing: ['tickets:admin'] })
}

/** State: what is said once holds for the calls after it. */
async function board(mcp: Client): Promise<void> {
  console.log('A call selects a board')
  console.log(`  ${(await mcp.callTool('open_board', { board: 'login' })).text}`)
}

/** Five steps, the last of which fails. Gives the id of their transaction once the server was killed while it took them back. */
async function work(mcp: Client): Promise<string> {
  console.log('Five steps that belong together')
  const created = { output: z.object({ id: z.string() }) }
  // What cannot be undone comes last, so that nothing has to be taken back after it.
  const tx = await mcp.transaction({ description: 'Split T-1 in two', timeout: '1m', irreversible: true })
  const one = await tx.callTool('create_ticket', { title: 'Login fails' }, created)
  const two = await tx.callTool('create_ticket', { title: 'Login is slow' }, created)
  assert(!one.isError && !two.isError)
  await tx.callTool('link_tickets', { from: one.structured.id, to: two.structured.id })
  await tx.callTool('update_ticket', { id: one.structured.id, title: 'Login fails at night' })
  console.log(`  ${(await mcp.callTool('show_board')).text}`)
  const told = await tx.callTool('notify', { text: 'There are two now' })
  assert(told.isError)
  console.log(`  notify: ${told.text}`)
  const lost = tx.rollback('The team could not be notified').catch(() => 'lost')
  assert.equal(await tracker.next(), 'stuck')
  await tracker.kill()
  assert.equal(await lost, 'lost')
  console.log('  The server is killed during the rollback')
  return tx.id
}

/** Nobody tells the new server what to do: it finds the rollback in its store. */
async function afterwards(mcp: Client, id: string): Promise<void> {
  const report = await ended(mcp, id)
  console.log(`A new server found the transaction: ${report.status}. ${report.reason}`)
  for (const { id, tool, status } of report.steps) console.log(`  ${id} ${tool.padEnd(14)} ${status}`)
  const { tickets, links } = read(join(folder, 'tickets.json'))
  console.log(`  Remaining: ${Object.keys(tickets).length} tickets, ${links.length} links`)
  assert.equal(report.status, 'rolled_back')
  assert.deepEqual({ tickets, links }, { tickets: {}, links: [] })
}

async function ended(mcp: Client, id: string): Promise<TransactionReport> {
  for (;;) {
    const report = await mcp.transactionStatus(id)
    if (report.status !== 'rolling_back') return report
    await wait(100)
  }
}

/** The client has noticed nothing: its rights and its state are good with the new server. */
async function goingOn(mcp: Client): Promise<void> {
  console.log('The client continues where it stopped')
  // A key of its own: whoever is not sure whether a call arrived makes it again, and it is done once.
  const once = { idempotencyKey: crypto.randomUUID() }
  const [first, second] = [
    await mcp.callTool('create_ticket', { title: 'Login fails' }, once),
    await mcp.callTool('create_ticket', { title: 'Login fails' }, once),
  ]
  assert(!first.isError)
  assert.deepEqual(second.structured, first.structured)
  const { text } = await mcp.callTool('show_board')
  assert.equal(text, 'login: T-3 Login fails')
  console.log(`  ${text}`)
}

/** Confirmation: nothing is deleted that its user did not agree to. */
async function deleting(mcp: Client): Promise<void> {
  console.log('Deleting asks for confirmation')
  const declined = await mcp.callTool('delete_ticket', { id: 'T-3' }).catch(classify)
  assert('code' in declined && declined.code === 'CONFIRMATION_DECLINED')
  assert.match((await mcp.callTool('show_board')).text, /T-3/)
  answer = true
  assert.equal((await mcp.callTool('delete_ticket', { id: 'T-3' })).text, 'Gone')
  console.log(`  ${(await mcp.callTool('show_board')).text}`)
}
