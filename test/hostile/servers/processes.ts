/** Hostile programs: what they write, when they end, and what they ask in between. Each is started by the client itself. */
import { readFileSync } from 'node:fs'
import { type Attack, must, pause, toolNames } from './attack.ts'

/** Whether a process is there, and not only waits for somebody to take note of its end. */
function runs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}

export const processAttacks: readonly Attack[] = [
  {
    key: 'H40',
    name: 'of several answers to one call the first counts, and 50,000 more are dropped',
    async act(host) {
      const mcp = await host.connect()
      const { text } = await mcp.callTool('t')
      await host.fine(mcp)
      must(text === 'first', `the answer was ${text}`)
      return `${host.traced.count('answer-to-nothing')} dropped`
    },
  },
  {
    key: 'H41',
    name: 'an answer after the cancel reaches nobody',
    async act(host) {
      const mcp = await host.connect()
      const stop = new AbortController()
      const call = mcp.callTool('t', {}, { signal: stop.signal }).then(
        () => 'answered',
        () => 'given up',
      )
      await pause(50)
      stop.abort()
      const outcome = await call
      await host.fine(mcp)
      must(outcome === 'given up' && host.traced.count('answer-to-nothing') === 1, `${outcome}; traced: ${host.traced}`)
      return outcome
    },
  },
  {
    key: 'H42',
    name: '100 MiB and 100,000 lines on standard error stop nobody and pile up nowhere',
    async act(host) {
      let lines = 0
      const mcp = await host.start('H42', { timeout: '30s' }, () => lines++)
      must((await mcp.callTool('t')).text === 'done', 'no answer')
      await host.fine(mcp)
      return `${lines} lines`
    },
  },
  {
    key: 'H43',
    name: 'a program that ignores SIGTERM and the end of its input is ended all the same',
    async act(host) {
      let pid = 0
      const mcp = await host.start('H43', {}, line => {
        pid = Number(line)
      })
      await host.fine(mcp)
      const before = performance.now()
      await mcp.close()
      const took = performance.now() - before
      must(took < 8_000, `it took ${Math.round(took)} ms`)
      must(pid > 0 && !runs(pid), `process ${pid} still runs`)
      return `ended in ${Math.round(took)} ms`
    },
  },
  {
    key: 'H44',
    name: '100 MiB without a line break are refused, and what follows is read',
    async act(host) {
      const mcp = await host.connect()
      must((await mcp.callTool('t')).text === 'after', 'no answer')
      must(host.traced.count('frame-refused') === 1, `traced: ${host.traced}`)
      await host.fine(mcp)
      return `traced: ${host.traced}`
    },
  },
  {
    key: 'H45',
    name: 'a program that ends in the middle of a frame fails the call at once',
    act: async host => host.refused((await host.connect()).callTool('t'), 'lost', 'invalid-result'),
  },
  {
    key: 'H46',
    name: 'a program that closes its input fails the next calls, and is ended',
    async act(host) {
      const mcp = await host.connect({ timeout: '5s' })
      const first = mcp.callTool('t').catch(() => {})
      await pause(200)
      const calls = ['a', 'b', 'c'].map(name => host.refused(mcp.callTool(name), 'lost', 'timeout'))
      const kinds = await Promise.all(calls)
      await first
      await mcp.close()
      return kinds.join()
    },
  },
  {
    key: 'H47',
    name: 'a program that ends while a child of it holds its output open is gone, and its child is ended',
    async act(host) {
      let pid = 0
      const mcp = await host.start('H47', { timeout: '8s' }, line => {
        pid = Number(line)
      })
      const kind = await host.refused(mcp.callTool('t'), 'lost')
      await mcp.close()
      must(pid > 0 && !runs(pid), `its child ${pid} still runs`)
      return kind
    },
  },
  {
    key: 'H48',
    name: '200,000 steps of progress and as many log messages are heard or left out, and hold up nothing',
    async act(host) {
      let progress = 0
      let logs = 0
      const mcp = await host.connect({ onLog: () => logs++, timeout: '60s' })
      const { text } = await mcp.callTool('t', {}, { onProgress: () => progress++ })
      must(text === 'done', 'no answer')
      await host.fine(mcp)
      return `${progress} steps, ${logs} messages`
    },
  },
  {
    key: 'H49',
    name: 'a million pings and 50,000 questions of each kind are answered or refused; what the server does not read piles up within bounds',
    async act(host) {
      let asked = 0
      let sampled = 0
      for (const name of ['elicitation/create', 'sampling/createMessage', 'roots/list', 'unheard/of', 'ping']) {
        const mcp = await host.start('H49', {
          timeout: '60s',
          roots: [],
          onElicit: () => {
            asked++
            return { action: 'decline' }
          },
          onSample: async () => {
            sampled++
            return { role: 'assistant', model: 'm', content: { type: 'text', text: 'x' } }
          },
        })
        const outcome = await mcp.callTool(name).then(
          ({ text }) => text,
          error => error.kind,
        )
        must(['done', 'lost', 'too-large'].includes(outcome), `${name}: ${outcome}`)
        await mcp.close()
      }
      must(asked <= 100 && sampled <= 100, `the user was asked ${asked} times, the model ${sampled} times`)
      return `the user was asked ${asked} times, the model ${sampled} times`
    },
  },
  {
    key: 'H50',
    name: '200,000 notices of different resources coalesce for whoever follows them slowly',
    async act(host) {
      const mcp = await host.connect({ timeout: '60s' })
      const updates = mcp.resourceUpdates('r:/')
      const changes = mcp.changes('tools')
      const first = Promise.all([updates.next(), changes.next()])
      await mcp.callTool('t')
      await first
      await toolNames(mcp)
      let more = 0
      const stop = setTimeout(() => void updates.return(), 300)
      for await (const _ of updates) more++
      clearTimeout(stop)
      await changes.return()
      await host.fine(mcp)
      must(more <= 2_000, `${more} notices were waiting`)
      return `${more} notices were waiting`
    },
  },
  {
    key: 'H51',
    name: "requests of the server under the ids of the client's own calls mix nothing up",
    async act(host) {
      const mcp = await host.connect({ roots: [] })
      const texts = await Promise.all(['a', 'b', 'c'].map(async name => (await mcp.callTool(name)).text))
      must(
        texts.every(text => text === 'right'),
        `answers: ${texts.join()}`,
      )
      await host.fine(mcp)
      return texts.join()
    },
  },
  {
    key: 'H52',
    name: 'lines that are not UTF-8, begin with NUL or a mark, or are UTF-16 are dropped, and the right one is read',
    async act(host) {
      const mcp = await host.connect()
      const { text } = await mcp.callTool('t')
      must(text === 'right' || text === 'with a mark', `the answer was ${JSON.stringify(text)}`)
      must(host.traced.count('frame-refused') >= 1, `traced: ${host.traced}`)
      await host.fine(mcp)
      return `${text}; traced: ${host.traced}`
    },
  },
]
