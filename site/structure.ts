/**
 * How the pages are ordered: sections by folder, and in them groups by task. The guides are grouped as on the page of all pages,
 * docs/index.md. A page that no group names comes under the last one.
 */

export interface Section {
  readonly title: string
  /** Address of its front page, which is the folder. */
  readonly address: string
  /** One sentence for its front page. */
  readonly about: string
  readonly groups: readonly Group[]
}

export interface Group {
  /** Empty for pages that stand under the section itself. */
  readonly title: string
  /** Addresses, in order; in one with a `*` it stands for any letters, and `**` also for folders. */
  readonly pages: readonly string[]
}

const guide = (title: string, ...names: string[]): Group => ({ title, pages: names.map(name => `guide/${name}`) })

/** Of the API those come first that most readers look for. */
const ENTRIES = ['server', 'client', 'host', 'gateway', 'stores', 'testing', 'conformance']

export const SECTIONS: readonly Section[] = [
  {
    title: 'Start',
    address: 'start/',
    about: 'Install the package and build a first server, agent or gateway in a few minutes each.',
    groups: [
      {
        title: '',
        pages: ['start/install', 'start/first-server', 'start/first-agent', 'start/first-gateway', 'start/*', 'contents'],
      },
    ],
  },
  {
    title: 'Tutorials',
    address: 'tutorials/',
    about: 'Build something whole, step by step, from an empty folder.',
    groups: [{ title: '', pages: ['tutorials/notes-server', 'tutorials/waking-agent', 'tutorials/gateway', 'tutorials/*'] }],
  },
  {
    title: 'Guides',
    address: 'guide/',
    about: 'One task each: what you write, what it does, and what to look out for.',
    groups: [
      guide(
        'Write a server',
        ...['server', 'errors', 'state', 'streaming', 'media', 'data-references', 'events', 'manifest', 'intent', 'provenance'],
        ...['logging', 'testing', 'compatibility'],
      ),
      guide('Make calls reliable', 'idempotency', 'transactions', 'confirmation', 'permissions', 'cost', 'stores'),
      guide('Publish and operate a server', 'authorization', 'hardening', 'runtimes', 'publishing'),
      guide('Use servers', 'client', 'client-authorization', 'discovery', 'live-client'),
      guide(
        'Run an agent',
        ...[
          'host',
          'host-terminal',
          'console-host',
          'models',
          'live-server',
          'live-permissions',
          'inbox',
          'state-and-undo',
          'budgets',
          'audit',
        ],
      ),
      guide('Set rules', 'policy', 'approvals'),
      guide(
        'Run a gateway',
        ...[
          'gateway',
          'gateway-upstreams',
          'gateway-names',
          'gateway-access',
          'gateway-bridging',
          'gateway-operation',
          'gateway-*',
        ],
        'console',
      ),
      guide(
        'Record and test',
        'record-and-replay',
        'console-author',
        'replay',
        'conformance',
        'conformance-clients',
        'conformance-*',
      ),
      { title: 'Contribute', pages: ['guide/contributing-*', 'contributing'] },
      { title: 'More', pages: ['guide/**'] },
    ],
  },
  {
    title: 'Concepts',
    address: 'concepts/',
    about: 'How the parts work and why they work that way.',
    groups: [
      {
        title: '',
        pages: [
          ...[
            'concepts/life-of-a-call',
            'concepts/sessions-and-stateless',
            'concepts/asking-the-user',
            'concepts/journal-and-undo',
          ],
          ...['concepts/events-and-push', 'concepts/stores-and-replicas', 'concepts/*', 'security', 'architecture', 'glossary'],
        ],
      },
    ],
  },
  {
    title: 'Reference',
    address: 'reference/',
    about: 'Every command, option, message and limit.',
    groups: [
      { title: 'Command', pages: ['reference/cli', 'reference/cli-*'] },
      {
        title: 'Options in code',
        pages: ['reference/server-options', 'reference/client-options', 'reference/host-options', 'reference/*-options'],
      },
      {
        title: 'Configuration',
        pages: ['reference/host-config', 'reference/gateway-config', 'reference/gateway-clients', 'reference/rules'],
      },
      {
        title: 'API',
        pages: [
          'reference/api/',
          ...ENTRIES.flatMap(name => [`reference/api/${name}`, `reference/api/${name}-*`]),
          'reference/api/*',
        ],
      },
      { title: 'Protocol', pages: ['reference/extensions', 'reference/live-*', 'reference/limits'] },
      { title: 'Errors', pages: ['errors', 'reference/errors/*'] },
      { title: 'Conformance', pages: ['reference/conformance-*'] },
      { title: 'Project', pages: ['performance', 'rough-edges', 'tasks', 'changelog', 'source/examples/'] },
      { title: 'More', pages: ['reference/**', '**'] },
    ],
  },
  {
    title: 'Compare',
    address: 'compare/',
    about: 'How Vivarium relates to other MCP software.',
    groups: [{ title: '', pages: ['compare/libraries', 'compare/gateways', 'compare/tools', 'compare/*'] }],
  },
  {
    title: 'Migrate',
    address: 'migrate/',
    about: 'What you wrote with another library, and what it becomes.',
    groups: [{ title: '', pages: ['migrate/sdk', 'migrate/sdk-v2', 'migrate/fastmcp', 'migrate/*'] }],
  },
  {
    title: 'Decisions',
    address: 'decisions/',
    about: 'Choices that others will ask about: context, choice and cost, one page each.',
    groups: [{ title: '', pages: ['decisions/*'] }],
  },
]

/** Pages by group by section, each page once; the front pages of sections are not listed. */
export function arrange<Page extends { readonly address: string }>(
  pages: readonly Page[],
): readonly { section: Section; groups: readonly { title: string; pages: readonly Page[] }[] }[] {
  const fronts = new Set(['', ...SECTIONS.map(({ address }) => address)])
  const left = new Map(pages.filter(({ address }) => !fronts.has(address)).map(page => [page.address, page]))
  // What is named takes its page before a pattern of another group could.
  const take = (address: string): Page[] => {
    const taken = [...left.values()].filter(page => fits(page.address, address))
    for (const page of taken) left.delete(page.address)
    return taken.sort((a, b) => (a.address < b.address ? -1 : 1))
  }
  const named = new Map<string, Page[]>()
  for (const pattern of [false, true]) {
    for (const { groups } of [...SECTIONS].sort(
      (a, b) => Number(a.address === 'reference/') - Number(b.address === 'reference/'),
    )) {
      for (const each of groups.flatMap(group => group.pages)) if (each.includes('*') === pattern) named.set(each, take(each))
    }
  }
  return SECTIONS.map(section => ({
    section,
    groups: section.groups
      .map(({ title, pages }) => ({ title, pages: pages.flatMap(each => named.get(each) ?? []) }))
      .filter(group => group.pages.length > 0),
  }))
}

function fits(address: string, pattern: string): boolean {
  const [before = '', after] = pattern.split(/\*+/)
  if (after === undefined) return address === pattern
  const between = address.slice(before.length, address.length - after.length)
  return address.startsWith(before) && address.endsWith(after) && (pattern.includes('**') || !between.includes('/'))
}
