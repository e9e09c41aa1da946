/**
 * A config file as it is written: the keys of an entry, in the spellings of all programs. `entry.ts` reads these keys, and the JSON Schema
 * of config files is generated from these types and their comments.
 */

/**
 * A text. Numbers and booleans are read as text. Variables such as `${API_KEY}` are replaced by their values.
 * @title string
 */
export type Text = string | number | boolean

/** The longest time that an entry can give, in milliseconds. */
export const longestMs = 86_400_000

/** Transport names for a command. */
export const stdioNames = ['stdio'] as const
/** Transport names for a URL. */
export const httpNames = [
  'http',
  'https',
  'sse',
  'streamable-http',
  'streamablehttp',
  'streamable_http',
  'ws',
  'wss',
  'websocket',
] as const

/**
 * A transport, in the words of various programs. Upper and lower case are the same.
 * @title transport
 * @ignoreCase
 */
type TransportName = (typeof stdioNames)[number] | (typeof httpNames)[number]

/**
 * Settings of a server for MCP Live. Names of feature sets may be patterns: in `memory.*` the star stands for any characters.
 * @nullable
 */
export interface WrittenLive {
  /**
   * Feature sets to enable without asking the user.
   * @example ["memory.*"]
   */
  readonly enable?: readonly Text[]
  /**
   * Feature sets to disable; this takes precedence over `enable` and over every rule that allows.
   * @example ["memory.push"]
   */
  readonly disable?: readonly Text[]
  /**
   * What scoped feature sets may act on, by feature set.
   * @example {"files.edit": {"whitelist": ["src/**"], "blacklist": ["**\/.env"]}}
   */
  readonly scopes?: Readonly<Record<string, WrittenScopes>>
  /**
   * What feature sets may do beyond the uses that they declare, by feature set; for servers that declare too little.
   * @example {"heartbeat": ["pushEvents"]}
   */
  readonly uses?: Readonly<Record<string, readonly Text[]>>
  /**
   * The feature set that a tool belongs to, by tool name; this takes precedence over what the server says.
   * @example {"read_file": "files.read"}
   */
  readonly tools?: Readonly<Record<string, Text>>
}

/**
 * Scopes of a feature set that are decided without asking the user. `*` stands for any characters except `/`, `**` for any characters.
 * @nullable
 */
export interface WrittenScopes {
  /**
   * Scopes that are allowed.
   * @example ["/project/**"]
   */
  readonly whitelist?: readonly Text[]
  /**
   * Scopes that are refused; this takes precedence over `whitelist`.
   * @example ["**\/.env"]
   */
  readonly blacklist?: readonly Text[]
}

/**
 * A server: a program to start, or a URL to connect to.
 * @nullable
 * @open
 * @atLeastOne command url serverUrl httpUrl
 */
export interface WrittenServer {
  /**
   * The program to start. It is run without a shell and looked up on the `PATH`.
   * @minLength 1
   * @example npx
   */
  readonly command?: Text
  /**
   * Arguments of the program.
   * @default []
   * @example ["-y", "@modelcontextprotocol/server-memory"]
   */
  readonly args?: readonly Text[]
  /**
   * Environment variables of the program, in addition to the few that it inherits (`PATH`, `HOME`, `LANG` and similar ones).
   * @example {"API_KEY": "${API_KEY}"}
   */
  readonly env?: Readonly<Record<string, Text>>
  /**
   * The working directory of the program. By default that of the process that starts it.
   * @example ${workspaceFolder}
   */
  readonly cwd?: Text
  /**
   * A file of environment variables for the program, one `NAME=value` per line; `env` takes precedence. A relative path starts from the
   * folder of the config file.
   * @example .env
   */
  readonly envFile?: Text
  /**
   * The transport, as other programs write it: `stdio`, `http`, `streamable-http`, `sse`, `websocket` or similar. It is needed only in
   * an entry that has both a command and a URL.
   */
  readonly type?: TransportName
  /** Another spelling of `type`. */
  readonly transport?: TransportName
  /** Another spelling of `type`. */
  readonly transportType?: TransportName
  /**
   * The URL of a server on the network: http, https, ws or wss.
   * @pattern ^([hH][tT][tT][pP][sS]?|[wW][sS][sS]?)://.
   * @example https://example.com/mcp
   */
  readonly url?: string
  /**
   * Another spelling of `url`.
   * @pattern ^([hH][tT][tT][pP][sS]?|[wW][sS][sS]?)://.
   */
  readonly serverUrl?: string
  /**
   * Another spelling of `url`; the first of `httpUrl`, `url` and `serverUrl` counts.
   * @pattern ^([hH][tT][tT][pP][sS]?|[wW][sS][sS]?)://.
   */
  readonly httpUrl?: string
  /**
   * HTTP headers of every request to the server.
   * @example {"Authorization": "Bearer ${API_TOKEN}"}
   */
  readonly headers?: Readonly<Record<string, Text>>
  /**
   * Whether the server is listed but not started.
   * @default false
   */
  readonly disabled?: boolean
  /**
   * How long a request may take without an answer or a sign of progress, in milliseconds. Tool calls of the model have 60 s instead.
   * @exclusiveMinimum 0
   * @maximum {longestMs}
   * @default 60000
   */
  readonly timeout?: number
  /**
   * How long the server may take to start and to answer the first request, in milliseconds.
   * @exclusiveMinimum 0
   * @maximum {longestMs}
   * @default 30000
   */
  readonly startTimeout?: number
  /**
   * Tools that may be called without asking in turns that the user begins. `*` stands for any characters.
   * @default []
   * @example ["read_*"]
   */
  readonly autoApprove?: readonly Text[]
  /** Another spelling of `autoApprove`. */
  readonly alwaysAllow?: readonly Text[]
  /** Settings for MCP Live: feature sets, scopes and uses. */
  readonly live?: WrittenLive
  /**
   * Names of the server's events that go to the inbox, where each becomes a turn.
   * @example ["ticket_created"]
   */
  readonly events?: readonly Text[]
}

/** The keys of `live`. */
export const liveKeys = ['enable', 'disable', 'scopes', 'uses', 'tools'] as const satisfies readonly (keyof WrittenLive)[]

/** The keys of an entry, in all spellings. */
export const serverKeys = [
  'command',
  'args',
  'env',
  'cwd',
  'envFile',
  'type',
  'transport',
  'transportType',
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
  'disabled',
  'timeout',
  'startTimeout',
  'autoApprove',
  'alwaysAllow',
  'live',
  'events',
] as const satisfies readonly (keyof WrittenServer)[]

/** The servers of a config file. */
export interface WrittenServers {
  /**
   * Servers by name, as most programs write them. A name has 1 to 128 characters; a file has at most 256 servers.
   * @keys ^[\s\S]{1,128}$
   * @maxProperties {mostServers}
   */
  readonly mcpServers?: Readonly<Record<string, WrittenServer>>
  /**
   * Servers by name, as VS Code writes them. A name must not be in both lists.
   * @keys ^[\s\S]{1,128}$
   * @maxProperties {mostServers}
   */
  readonly servers?: Readonly<Record<string, WrittenServer>>
  /**
   * Questions that VS Code asks its user. Vivarium does not ask them, so the list must be empty: use environment variables.
   * @maxItems 0
   */
  readonly inputs?: readonly unknown[]
}

/** The most servers of a file. */
export const mostServers = 256

/** The keys of a shape whose values are of one kind: what the reader may read in that way. */
export type KeysOf<Shape, Kind> = {
  [Key in keyof Shape]-?: NonNullable<Shape[Key]> extends Kind ? Key : never
}[keyof Shape] &
  string
