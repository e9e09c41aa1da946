/** What a console can show beside a gateway and a host. Only what these types say is published, and nothing of how it is done. */
import type { ConnectOptions } from '../client/index.ts'
import type { Target } from '../client/target.ts'
import type { JudgeTarget } from '../conformance/index.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import type { Tape } from '../recording/mock-server.ts'
import type { ConformanceWish } from './contract/conformance.ts'

/** What can be called: all that `connect` takes, or a function that opens a connection, as often as it is wanted. */
export type PlaygroundTarget = Target | (() => Connection)

/** What a playground is started on. */
export interface PlaygroundOptions {
  /** The server: its address, its command, an open connection, or a function that opens one each time it is called. */
  readonly target: PlaygroundTarget
  /** The name of the server in the page. Default: made of the target. */
  readonly name?: string
  /** The target as people read it. Default: the name. */
  readonly label?: string
  /** The target as it is typed on a command line, for commands to copy. Default: the label. */
  readonly again?: string
  /** Headers, credentials, time limits and other options of its connections. Default: none. */
  readonly connect?: ConnectOptions
  /**
   * Where conformance judges the server. Default: the target, or, where that is a connection or a function, nothing: then there is no
   * conformance.
   */
  readonly judge?: JudgeTarget
  /** Starts a run of conformance at once, as if somebody had asked for it. Default: nobody does. */
  readonly run?: ConformanceWish
  /** The folder of tapes, which is made when one is recorded. Default: `tapes` in the working directory. */
  readonly tapes?: string
  /** Shows fields of frames that look secret, too. Headers with secrets are never shown. Default: false. */
  readonly reveal?: boolean
}

/** A tape without a server, for `serveConsole`. */
export interface TapeOptions {
  /** The tape, as `openTape` reads it. */
  readonly tape: Tape
  /** The file, as people read it. */
  readonly name: string
}
