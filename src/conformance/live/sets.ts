/** What a live server declares, obeys and announces (MCP Live §3–§6). */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Scenario } from '../scenario.ts'
import { turn } from './host.ts'
import { bringing, bringingSet, live, objectIn, setNamed, usesOf, using } from './scenario-of.ts'

const uses = ['pushEvents', 'contextHooks.beforeInference', 'contextHooks.afterInference', 'inferenceRequest', 'tools']
const toHost = ['push/event', 'inference/request', 'model/info', 'scope/elevate']
const pushing = bringingSet('push')
const mark = (): string => `kit-${crypto.randomUUID()}`
const holds = (text: string) => (params: unknown) => JSON.stringify(params).includes(text)

export const setScenarios: readonly Scenario[] = [
  live({
    id: 'L3.1-1',
    title: 'MCP Live is declared under experimental.mcpl with its version, beside the revision of MCP',
    writes: false,
    run: async ({ bench, expect, modern }) => {
      const mcpl = objectIn(bench.peer.capabilities['experimental'], 'mcpl')
      expect(typeof mcpl['version'] === 'string' && mcpl['version'].startsWith('0.'), 'experimental.mcpl has no version')
      if (modern)
        expect(
          JSON.stringify(bench.peer.extension('dev.vivarium/live')) === JSON.stringify(mcpl),
          'extensions["dev.vivarium/live"] is not the same as experimental.mcpl',
        )
    },
  }),
  live({
    id: 'L3.2-1',
    title: 'A host that announced nothing is sent nothing of MCP Live, and its calls work',
    host: { declares: false },
    tools: { pushing },
    run: async ({ host, tools, expect }) => {
      const called = await host.call(tools.pushing.name, tools.pushing.args)
      expect(
        called.answer.result !== undefined && !called.isError,
        'A tool that pushes does not work for a plain host',
        called.frames,
      )
      await wait(150)
      const strange = host.peer.heard(
        ({ method }) =>
          typeof method === 'string' &&
          (toHost.includes(method) ||
            method.startsWith('featureSets/') ||
            method.startsWith('live/') ||
            method.startsWith('mcpl/')),
      )
      expect(strange.length === 0, 'A plain host was sent a message of MCP Live', strange)
      const hook = await host.request('context/beforeInference', turn('x'))
      expect(hook.code === -32601, 'A hook of a plain host is not answered with -32601', hook.frames)
    },
  }),
  live({
    id: 'L4-1',
    title: 'Each request of the host gets exactly one answer under its id',
    needs: using('contextHooks.beforeInference'),
    run: async ({ host, expect }) => {
      const called = await host.request('context/beforeInference', turn('x'))
      await host.peer.settled()
      const answers = host.peer.heard(message => message['id'] === called.answer.id && message['method'] === undefined)
      expect(answers.length === 1, `A request got ${answers.length} answers`, answers)
    },
  }),
  live({
    id: 'L4.1-3',
    also: ['L4.1-1'],
    title: 'A method of the other direction is not found as a request, and ignored as a notification',
    run: async ({ host, expect, modern }) => {
      for (const method of toHost) {
        const called = await host.request(method, {})
        expect(called.code === -32601, `${method} to a server is not answered with -32601`, called.frames)
      }
      if (modern) return
      const answers = (): number => host.peer.heard(message => message['method'] === undefined).length
      const before = answers()
      await host.peer.notify('featureSets/changed', { added: {}, removed: [] })
      await host.peer.settled()
      expect(answers() === before + 1, 'A notification of the other direction was answered', host.peer.frames.slice(-3))
    },
  }),
  live({
    id: 'L5.1-1',
    also: ['LB-1'],
    title: 'Capabilities stand under the keys that there are for them, and cover what the sets use',
    writes: false,
    run: async ({ declared, sets, expect }) => {
      const { pushEvents = false, inferenceRequest = false, contextHooks = {} } = declared
      expect(typeof pushEvents === 'boolean', 'pushEvents is no boolean')
      expect(typeof inferenceRequest === 'boolean' || isRecord(inferenceRequest), 'inferenceRequest is no object')
      expect(isRecord(contextHooks), 'contextHooks is no object')
      const hooks = isRecord(contextHooks) ? contextHooks : {}
      const has: Record<string, boolean> = {
        pushEvents: pushEvents === true,
        inferenceRequest: inferenceRequest !== false,
        'contextHooks.beforeInference': (hooks['beforeInference'] ?? false) !== false,
        'contextHooks.afterInference': (hooks['afterInference'] ?? false) !== false,
      }
      for (const [name, set] of sets)
        for (const use of usesOf(set))
          expect(has[String(use)] ?? true, `The set ${name} uses ${String(use)}, which is not announced`)
    },
  }),
  live({
    id: 'L6.2-1',
    also: ['L6.2-2', 'L7.1-1', 'L8.1-1', 'LB-1'],
    title: 'Each feature set has a description and names what it uses',
    writes: false,
    run: async ({ sets, expect }) => {
      expect(sets.size > 0, 'MCP Live is declared without feature sets')
      for (const [name, set] of sets) {
        expect(typeof set['description'] === 'string' && set['description'] !== '', `The set ${name} has no description`)
        expect(
          Array.isArray(set['uses']) && set['uses'].every(use => uses.includes(String(use))),
          `The set ${name} uses what there is not`,
        )
        for (const flag of ['scoped', 'rollback', 'hostState'])
          expect(['undefined', 'boolean'].includes(typeof set[flag]), `${flag} of the set ${name} is no boolean`)
      }
    },
  }),
  ...selecting(),
]

function selecting(): readonly Scenario[] {
  return [
    live({
      id: 'L6.4-1',
      title: 'Before the host has chosen, nothing is said; what waited comes when its set is on',
      host: { select: false },
      tools: { pushing },
      tries: 3,
      run: async ({ host, tools, expect, sets }) => {
        const text = mark()
        await host.call(tools.pushing.name, { ...tools.pushing.args, content: text })
        expect(
          (await host.next('push/event', holds(text), 250)) === undefined,
          'A push came before the host had chosen',
          host.peer.frames.slice(-3),
        )
        const set = String(setNamed(tools.pushing.listed, 'push'))
        await host.select({ enabled: [set], disabled: [...sets.keys()].filter(name => name !== set) })
        expect(
          (await host.next('push/event', holds(text))) !== undefined,
          'A push that waited did not come when its set was switched on',
          host.peer.frames.slice(-3),
        )
      },
    }),
    live({
      id: 'L6.7-2',
      also: ['L6.7-3', 'L6.7-1'],
      title: 'When a set is switched off, its pushes stop at once; queued ones are not sent',
      tools: { pushing },
      tries: 3,
      run: async ({ host, tools, expect, sets }) => {
        const set = String(setNamed(tools.pushing.listed, 'push'))
        const first = mark()
        await host.call(tools.pushing.name, { ...tools.pushing.args, content: first })
        expect(
          (await host.next('push/event', holds(first))) !== undefined,
          'A push of a set that is on did not come',
          host.peer.frames.slice(-3),
        )
        await host.select({ enabled: [...sets.keys()].filter(name => name !== set), disabled: [set] })
        const second = mark()
        await host.call(tools.pushing.name, { ...tools.pushing.args, content: second })
        expect(
          (await host.next('push/event', holds(second), 300)) === undefined,
          'A push came after its set was switched off',
          host.peer.frames.slice(-3),
        )
        // What is left behind would come to the next host.
        await host.select({ enabled: [...sets.keys()], disabled: [] })
        await host.next('push/event', holds(second))
      },
    }),
    live({
      id: 'L6.7-2h',
      also: ['L6.7-2', 'L6.7-1'],
      title: 'A hook of a set that is off adds nothing; a set in both lists is off',
      needs: using('contextHooks.beforeInference'),
      run: async ({ host, sets, expect }) => {
        const hooked = [...sets].filter(([, set]) => usesOf(set).includes('contextHooks.beforeInference')).map(([name]) => name)
        const before = await host.request('context/beforeInference', turn('How is it?'))
        expect(Array.isArray(before.result['contextInjections']), 'A hook gives no contextInjections', before.frames)
        await host.select({ enabled: [...sets.keys()], disabled: hooked })
        const after = await host.request('context/beforeInference', turn('How is it?'))
        const added = after.result['contextInjections']
        expect(
          after.code !== undefined || !Array.isArray(added) || added.length === 0,
          'A hook of a set that is off injected something',
          after.frames,
        )
      },
    }),
    live({
      id: 'L6.7-2t',
      also: ['L6.7-2', 'LA-1'],
      title: 'A tool of a set that is off is refused with the number for it, naming the set',
      tools: { acting: bringingSet('scope') },
      run: async ({ host, tools, sets, expect, modern }) => {
        const set = String(setNamed(tools.acting.listed, 'scope'))
        await host.select({ enabled: [...sets.keys()].filter(name => name !== set), disabled: [set] })
        const called = await host.call(tools.acting.name, tools.acting.args)
        expect(
          called.code === (modern ? -31001 : -32001),
          'A tool of a set that is off is not refused with its number',
          called.frames,
        )
        expect(objectIn(called.answer.error, 'data')['featureSet'] === set, 'The refusal does not name the set', called.frames)
      },
    }),
    live({
      id: 'L6.7-4',
      title: 'Sets that come or go are announced with their declarations',
      tools: { changing: bringing('change:sets') },
      run: async ({ host, tools, expect }) => {
        await host.call(tools.changing.name, tools.changing.args)
        const said = await host.next('featureSets/changed')
        expect(
          said !== undefined && said.id === undefined,
          'A change of the sets is not announced by a notification',
          host.peer.frames.slice(-3),
        )
        const { added, removed } = said?.params ?? {}
        const names = isRecord(added) ? Object.entries(added) : []
        expect(
          names.every(([, set]) => isRecord(set) && typeof set['description'] === 'string' && Array.isArray(set['uses'])),
          'added has no declarations',
          [said?.frame],
        )
        expect(
          (removed === undefined || Array.isArray(removed)) && names.length + (Array.isArray(removed) ? removed.length : 0) > 0,
          'Neither added nor removed names anything',
          [said?.frame],
        )
      },
    }),
    live({
      id: 'A21',
      title: 'A selection that is a request is answered by a receipt, and is whole',
      run: async ({ host, sets, declared, expect }) => {
        const effectiveCapabilities = ['tools', ...(declared['pushEvents'] === true ? ['pushEvents'] : [])]
        const called = await host.grant({ enabled: [], disabled: [...sets.keys()] }, effectiveCapabilities)
        expect(called.result['accepted'] === true, 'featureSets/update as a request gets no receipt', called.frames)
        const hook = await host.request('context/beforeInference', turn('x'))
        const added = hook.result['contextInjections']
        expect(
          hook.code !== undefined || !Array.isArray(added) || added.length === 0,
          'After a selection of nothing a hook injected something',
          hook.frames,
        )
      },
    }),
  ]
}
