/** The screens that this page has: their names, addresses and keys. The process says which of them it serves. */
import type { Screen } from '#contract'

export interface ScreenEntry {
  readonly screen: Screen
  readonly title: string
  readonly path: string
  /** After `g`. */
  readonly letter: string
  /** The path of an icon of 16 by 16. */
  readonly icon: string
}

export const screenEntries: readonly ScreenEntry[] = [
  {
    screen: 'chat',
    title: 'Chat',
    path: '/chat',
    letter: 'h',
    icon: 'M2 3h12v8H7l-3.5 3v-3H2zM5 6h6M5 8.5h4',
  },
  { screen: 'inbox', title: 'Inbox', path: '/inbox', letter: 'i', icon: 'M2 9l2-6h8l2 6v4H2zM2 9h3.5l1 2h3l1-2H14' },
  {
    screen: 'state',
    title: 'State',
    path: '/state',
    letter: 's',
    icon: 'M4.5 4.5v7M4.5 4.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM4.5 14.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM11.5 6.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM11.5 6.5c0 2.5-7 2-7 5',
  },
  {
    screen: 'explain',
    title: 'Explain',
    path: '/explain',
    letter: 'e',
    icon: 'M1.5 6h4v4h-4zM10.5 1.5h4v4h-4zM10.5 10.5h4v4h-4zM5.5 8l5-4.5M5.5 8l5 4.5',
  },
  {
    screen: 'overview',
    title: 'Overview',
    path: '/overview',
    letter: 'o',
    icon: 'M2 2h5v6H2zM9 2h5v4H9zM9 8h5v6H9zM2 10h5v4H2z',
  },
  {
    screen: 'playground',
    title: 'Playground',
    path: '/playground',
    letter: 'p',
    icon: 'M4.5 2.2v11.6L13.5 8z',
  },
  {
    screen: 'traffic',
    title: 'Traffic',
    path: '/traffic',
    letter: 't',
    icon: 'M1.5 5h11M10 2l3 3-3 3M14.5 11h-11M6 8l-3 3 3 3',
  },
  {
    screen: 'conformance',
    title: 'Conformance',
    path: '/conformance',
    letter: 'f',
    icon: 'M1.5 2.5h13v11h-13zM1.5 6h13M6 2.5v11M8.2 9.8l1.4 1.4 2.6-2.8',
  },
  {
    screen: 'approvals',
    title: 'Approvals',
    path: '/approvals',
    letter: 'a',
    icon: 'M8 1.5l5.5 2v4c0 3.5-2.3 5.8-5.5 7-3.2-1.2-5.5-3.5-5.5-7v-4zM5.5 7.8l1.8 1.8 3.3-3.6',
  },
  { screen: 'audit', title: 'Audit', path: '/audit', letter: 'u', icon: 'M3 1.5h10v13H3zM5.5 5h5M5.5 8h5M5.5 11h3' },
  {
    screen: 'clients',
    title: 'Clients',
    path: '/clients',
    letter: 'c',
    icon: 'M6 7.5a2.75 2.75 0 100-5.5 2.75 2.75 0 000 5.5zM1.5 14c0-2.8 2-4.5 4.5-4.5s4.5 1.7 4.5 4.5M11 2.5a2.5 2.5 0 010 4.8M12.3 9.8c1.4.6 2.2 2.1 2.2 4.2',
  },
  { screen: 'logs', title: 'Logs', path: '/logs', letter: 'l', icon: 'M2 3.5l3.5 3L2 9.5M7.5 10H14M2 13.5h12' },
]
