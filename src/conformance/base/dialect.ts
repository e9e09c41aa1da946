/** The early dialect that names its version under another key: bare lists, `tools/invoke`, `shutdown`. */
import { isRecord } from '../../jsonrpc/message.ts'
import { codeIn, duplex, resultIn, scenario, tool } from '../define.ts'
import type { Scenario } from '../scenario.ts'
import { paramsOf } from './work.ts'

const proves = ['dialect mcpVersion 2025-06-18']
const revisions = ['s3'] as const

export const dialectScenarios: readonly Scenario[] = [
  scenario('base/dialect/hello', {
    title: 'the handshake of the dialect names the server and what it supports',
    proves,
    revisions,
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const { server, serverCapabilities } = peer.hello ?? {}
      bench.expect(isRecord(server) && typeof server['name'] === 'string', 'server must have a name', peer.frames)
      bench.expect(isRecord(serverCapabilities), 'serverCapabilities must be an object', peer.frames)
    },
  }),
  scenario('base/dialect/list', {
    title: 'tools are a bare list of names, descriptions and schemas',
    proves,
    revisions,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/list')
      bench.expect(Array.isArray(answer.result), 'the result must be a bare list', [answer.frame])
      for (const one of Array.isArray(answer.result) ? answer.result : []) {
        const isTool = isRecord(one) && typeof one['name'] === 'string' && isRecord(one['inputSchema'])
        bench.expect(isTool, 'every tool must have a name and an inputSchema', [answer.frame])
      }
    },
  }),
  scenario('base/dialect/invoke', {
    title: 'a tool is invoked, and answers with a status and an output',
    proves,
    revisions,
    needs: [tool('test_simple_text')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/invoke', { name: 'test_simple_text', arguments: {} })
      bench.expect(resultIn(answer)['status'] === 'success', 'status must be "success"', [answer.frame])
      bench.expect('output' in resultIn(answer), 'there must be an output', [answer.frame])
    },
  }),
  scenario('base/dialect/error', {
    title: 'a tool that fails answers with another status',
    proves,
    revisions,
    needs: [tool('test_error_handling')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/invoke', { name: 'test_error_handling', arguments: {} })
      bench.expect(answer.error === undefined && resultIn(answer)['status'] !== 'success', 'status must say that it failed', [
        answer.frame,
      ])
    },
  }),
  scenario('base/dialect/invalid-arguments', {
    title: 'arguments that do not fit are error 4001',
    proves,
    revisions,
    needs: [tool('greet')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/invoke', { name: 'greet', arguments: {} })
      bench.expect(codeIn(answer) === 4001, 'arguments that do not fit must be refused with error 4001', [answer.frame])
    },
  }),
  scenario('base/dialect/unknown-tool', {
    title: 'a tool that does not exist is refused',
    proves,
    revisions,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/invoke', { name: 'vivarium-no-such-tool', arguments: {} })
      bench.expect(codeIn(answer) === -32602, 'an unknown tool must be refused with error -32602', [answer.frame])
    },
  }),
  scenario('base/dialect/progress', {
    title: 'progress is told in percent, by the id of the request',
    proves,
    revisions,
    carriers: duplex,
    needs: [tool('test_tool_with_progress')],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/invoke', { name: 'test_tool_with_progress', arguments: {} })
      const steps = peer.heard('progress')
      bench.expect(steps.length > 0, 'there must be progress')
      for (const step of steps) {
        const { id, percent } = paramsOf(step)
        bench.expect(id === answer.id, 'progress must name the request by its id', [step])
        bench.expect(typeof percent === 'number' && percent >= 0 && percent <= 100, 'percent must be from 0 to 100', [step])
      }
    },
  }),
  scenario('base/dialect/cancel', {
    title: 'a cancelled request is answered as cancelled',
    proves,
    revisions,
    carriers: duplex,
    needs: [tool('slow_compute')],
    async run(bench) {
      const peer = await bench.open()
      const begun = peer.begin('tools/invoke', { name: 'slow_compute', arguments: { seconds: 20 } }, { ms: 5_000 })
      await peer.settled()
      await peer.notify('cancel', { id: begun.id })
      const answer = await begun.answer
      bench.expect(resultIn(answer)['status'] === 'cancelled', 'status must be "cancelled"', [answer.frame])
    },
  }),
  scenario('base/dialect/shutdown', {
    title: 'shutdown is answered with null, and nothing is served after it',
    proves,
    revisions,
    carriers: duplex,
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const answer = await peer.request('shutdown')
      bench.expect(answer.result === null, 'the result of shutdown must be null', [answer.frame])
      const late = await peer.request('tools/list')
      bench.expect(late.error !== undefined, 'nothing must be served after shutdown', [late.frame])
      await peer.notify('exit')
    },
  }),
]
