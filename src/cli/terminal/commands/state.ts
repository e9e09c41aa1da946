/** `/state`: the checkpoints that servers left, and what lies at them. */
import type { TreeNode } from '../../../host/state/book.ts'
import { brief } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { say } from '../text.ts'
import { timeText } from '../words.ts'

const shown = 15

export const state: Command = {
  name: 'state',
  takes: '[SET [CHECKPOINT]]',
  about: 'checkpoints of feature sets, their content and differences',
  run: async (session, rest) => {
    const { host, screen } = session
    const [set = '', checkpoint] = rest.split(/\s+/)
    const sets = (await host.state.sets()).filter(({ server, featureSet }) => set === '' || set === featureSet || set === server)
    if (sets.length === 0)
      screen.line(
        set === '' ? ' No server has left a state yet.' : say` No set ${screen.paint.plain(brief(set))} has left a state.`,
      )
    for (const { server, featureSet } of sets) {
      const tree = await host.state.tree(server, featureSet)
      screen.line(
        say` ${screen.paint.name(`${server}/${featureSet}`)} ${screen.paint.dim(`${tree.length} checkpoint${tree.length === 1 ? '' : 's'}`)}`,
      )
      if (checkpoint !== undefined) await showDifference(session, server, featureSet, tree, checkpoint)
      else await showTree(session, server, featureSet, tree)
    }
    return undefined
  },
}

async function showTree({ host, screen }: Session, server: string, set: string, tree: readonly TreeNode[]): Promise<void> {
  const { paint } = screen
  for (const { checkpoint, parent, at, state: kept, current } of tree.slice(-shown)) {
    const mark = current ? paint.good('▶') : ' '
    const from = parent === null ? 'the first' : `after ${brief(parent, 24)}`
    screen.line(
      say`  ${mark} ${paint.plain(brief(checkpoint, 40))} ${paint.dim(`${timeText(at)} ${from}${kept === 'kept' ? '' : `, ${kept}`}`)}`,
    )
  }
  const head = tree.find(({ current }) => current)
  if (head === undefined) screen.line(say`    ${paint.dim('as before the first: the next call carries no state')}`)
  if (head?.state !== 'kept') return
  const content = await host.state.at(server, set, head.checkpoint)
  screen.line(say`    ${paint.dim(brief(JSON.stringify(content), 400))}`)
}

async function showDifference(
  { host, screen }: Session,
  server: string,
  set: string,
  tree: readonly TreeNode[],
  wanted: string,
): Promise<void> {
  const { paint } = screen
  const node =
    tree.find(({ checkpoint }) => checkpoint === wanted) ?? tree.find(({ checkpoint }) => checkpoint.startsWith(wanted))
  if (node === undefined) return screen.line(say`   There is no checkpoint ${paint.plain(brief(wanted))}.`)
  if (node.state !== 'kept') return screen.line('   Its content lies with the server.')
  const parent = tree.find(({ checkpoint }) => checkpoint === node.parent)
  if (parent?.state !== 'kept')
    return screen.line(say`   ${paint.plain(brief(JSON.stringify(await host.state.at(server, set, node.checkpoint)), 2_000))}`)
  for (const step of await host.state.diff(server, set, parent.checkpoint, node.checkpoint))
    screen.line(say`   ${paint.plain(brief(JSON.stringify(step), 300))}`)
}
