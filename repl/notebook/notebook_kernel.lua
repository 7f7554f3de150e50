-- SPDX-License-Identifier: MIT
--
-- notebook_kernel.lua - the supervisor of a kernel: it receives the requests of
-- the front ends, hands those about code to the session one at a time, and
-- publishes what the session sends and prints. It never waits for the session,
-- nor for a front end: while one is slow to read, the session waits.

local kernel_host = require "nacre.kernel_host"
local host = require "nacre.host"
local json = require "nacre.json"
local messages = require "nacre.notebook_messages"
local streams = require "nacre.notebook_streams"

local TICK = 1000             -- milliseconds between looks at the parent
local RETRY = 5               -- the same between two tries to publish

local kernel = {}

local ends                    -- file descriptors of the session
local wire                    -- makes and reads messages
local sockets = {}            -- by channel
local waiting = {}            -- requests that were received, not yet handled
local current                 -- the request that the session works on
local number = 0              -- of that request, counted
local input                   -- the request on whose behalf input is awaited
local status                  -- exit status, when the kernel is to end
local unpublished = {}        -- frames that a front end is slow to take
local receipt                 -- does the session wait until they are sent?

-- For the log of whoever started the kernel.
local function complain(text)
  io.stderr:write("nacre --kernel: ", text, "\n")
end

--
-- Sending
--
local function publish(kind, content, parent)
  local frames = wire:frames({kind}, kind, content, parent)
  if unpublished[1] or not kernel_host.send_frames(sockets.iopub, frames) then
    unpublished[#unpublished + 1] = frames
  end
end

-- Must the session wait? A request that was interrupted need not: it ends.
local function is_held()
  return unpublished[1] ~= nil and not kernel_host.interrupted()
end

-- Publishes what has waited; then the session goes on.
local function publish_rest()
  local n = 0
  while unpublished[n + 1] and
        kernel_host.send_frames(sockets.iopub, unpublished[n + 1]) do
    n = n + 1
  end
  table.move(unpublished, n + 1, #unpublished + n, 1)
  if receipt and not is_held() then
    receipt = false
    kernel_host.write(ends.channel, "received\n")
  end
end

local function reply(message, kind, content)
  kernel_host.send_frames(sockets[message.channel],
                          wire:frames(message.ids, kind, content, message))
end

local function state(name, message)
  publish("status", json.line {execution_state = name}, message)
end

-- Publishes what was printed, unless the request wants to be silent.
local function flush()
  for _, piece in ipairs(streams.take()) do
    if not (current and current.content.silent == true) then
      publish("stream", json.line(piece), current)
    end
  end
end

--
-- Requests that are answered here
--
local function info()
  return json.line {
    status = "ok", protocol_version = messages.version,
    implementation = "nacre", implementation_version = host.version,
    banner = ("nacre %s  %s"):format(host.version, _VERSION),
    language_info = {name = "lua", version = _VERSION:match "[%d.]+",
                     mimetype = "text/x-lua", file_extension = ".lua",
                     pygments_lexer = "lua", codemirror_mode = "lua"},
    help_links = {}, debugger = false}
end

local here = {}               -- each gives the content of the reply

function here.kernel_info_request() return info() end

function here.comm_info_request()
  return json.line {status = "ok", comms = json.object}
end

function here.interrupt_request()
  kernel_host.interrupt()
  return json.line {status = "ok"}
end

function here.shutdown_request(message)
  status = 0
  return json.line {status = "ok",
                    restart = message.content.restart == true}
end

-- Nobody here opens a comm; one that a front end opens is closed.
local function close_comm(message)
  local id = message.content.comm_id
  if type(id) ~= "string" then return end
  publish("comm_close", json.line {comm_id = id, data = json.object}, message)
end

local ignored = {comm_msg = true, comm_close = true}

-- Requests that the session answers.
local session = {execute_request = true, complete_request = true,
                 inspect_request = true, is_complete_request = true,
                 history_request = true}

--
-- Receiving
--
local function begin(message)
  number = number + 1
  current = message
  -- before a front end knows that it may interrupt
  kernel_host.running(message.kind == "execute_request" and number or 0)
  state("busy", message)
  local line = ("%d %s %s\n"):format(number, message.kind,
                                     message.text:gsub("[\r\n]", " "))
  if not kernel_host.write(ends.channel, line) then
    complain "the session does not read"
  end
end

local function handle(message)
  if session[message.kind] then return begin(message) end
  state("busy", message)
  local answer = here[message.kind]
  if answer then
    local kind = message.kind:gsub("_request$", "_reply")
    local content = answer(message)
    if status then publish(kind, content, message) end
    reply(message, kind, content)
  elseif message.kind == "comm_open" then
    close_comm(message)
  elseif not ignored[message.kind] then
    complain(("%s is not known"):format(message.kind))
  end
  state("idle", message)
end

-- The next message of a channel, or nil. Those that are malformed are dropped.
local function receive(channel)
  while true do
    local frames = kernel_host.receive_frames(sockets[channel])
    if not frames then return nil end
    local message, wrong = wire:parse(frames)
    if message then
      message.channel = channel
      return message
    end
    complain(wrong)
  end
end

-- After an error, the cells that were sent along with it do not run.
local function abort()
  for message in receive, "shell" do waiting[#waiting + 1] = message end
  local kept = {}
  for _, message in ipairs(waiting) do
    if message.kind == "execute_request" then
      state("busy", message)
      reply(message, "execute_reply", json.line {status = "aborted"})
      state("idle", message)
    else
      kept[#kept + 1] = message
    end
  end
  waiting = kept
end

--
-- The session
--
local function finish(kind, content, failed)
  local done = current
  current, input = nil, nil
  kernel_host.running(0)
  reply(done, kind, content)
  if failed and done.content.stop_on_error ~= false then abort() end
  state("idle", done)
end

local function ask()
  if not current then return end
  input = current
  local content = json.line {prompt = "", password = false}
  kernel_host.send_frames(sockets.stdin,
    wire:frames(current.ids, "input_request", content, current))
end

-- What the user entered is a line; "\4" is Ctrl-D.
local function answer(message)
  if message.kind ~= "input_reply" or not input then return end
  local value = message.content.value
  input = nil
  if value == "\4" then
    kernel_host.write(ends.channel, "answer -1\n")
  else
    value = (type(value) == "string" and value or "") .. "\n"
    kernel_host.write(ends.channel, ("answer %d\n%s"):format(#value, value))
  end
end

-- A line of the session: "publish KIND CONTENT", "reply KIND CONTENT", the same
-- as "failed", or "input".
local function from_session(line)
  streams.drain()
  flush()
  local word, kind, content = line:match "^(%l+) ?([%w_]*) ?(.*)$"
  if word == "publish" then
    publish(kind, content, current)
    receipt = true
  elseif word == "input" then ask()
  elseif current then finish(kind, content, word == "failed") end
end

local HOW = {exit = "the session has ended with exit status %d",
             signal = "the session was ended by signal %d (%s)"}

-- The session is gone, by os.exit or by a crash: so is the kernel.
local function mourn()
  streams.drain()
  flush()
  local how, which, name = kernel_host.end_session()
  status = how == "exit" and which or 128 + which
  if not current then return end
  local text = HOW[how]:format(which, name)
  local content = {ename = how, evalue = text, traceback = {text}}
  publish("error", json.line(content), current)
  content.status, content.execution_count = "error", 0
  finish("execute_reply", json.line(content), true)
end

local partial = {}            -- of a line that has not come to its end

local function read_session()
  local text = kernel_host.read(ends.channel)
  if text == false then return mourn() end
  partial[#partial + 1] = text
  if not text:find("\n", 1, true) then return end
  text = table.concat(partial)
  local last = 1
  for line, after in text:gmatch "([^\n]*)\n()" do
    from_session(line)
    last = after
  end
  partial = {text:sub(last)}
end

--
-- The loop
--
local function echo()
  local frames = kernel_host.receive_frames(sockets.heartbeat)
  if frames then kernel_host.send_frames(sockets.heartbeat, frames) end
end

-- What is waited for, and what is done when it is there.
local function sources()
  local list, actions = {}, {}
  local function add(source, action)
    if source then list[#list + 1], actions[#actions + 1] = source, action end
  end
  add(sockets.heartbeat, echo)
  add(sockets.control, function()
    local message = receive "control"
    if message then handle(message) end
  end)
  add(sockets.stdin, function()
    local message = receive "stdin"
    if message then answer(message) end
  end)
  add(ends.channel, read_session)
  if not is_held() then
    for _, fd in ipairs(streams.open()) do add(fd, streams.read) end
  end
  if not current then
    add(sockets.shell, function()
      local message = receive "shell"
      if message then waiting[#waiting + 1] = message end
    end)
  end
  return list, actions
end

local function step()
  local list, actions = sources()
  local ready = kernel_host.poll(list, streams.patience(
    unpublished[1] and RETRY or TICK))
  for i, action in ipairs(actions) do
    if ready[i] and not status then action(list[i]) end
  end
  if streams.due() then flush() end
  publish_rest()
  while waiting[1] and not current and not status do
    handle(table.remove(waiting, 1))
  end
end

local CHANNELS = {shell = "router", control = "router", stdin = "router",
                  iopub = "pub", heartbeat = "rep"}
local PORTS = {heartbeat = "hb_port"}

local function endpoint(connection, channel)
  local port = connection[PORTS[channel] or channel .. "_port"]
  local separator = connection.transport == "ipc" and "-" or ":"
  return ("%s://%s%s%s"):format(connection.transport, connection.ip, separator,
                                tostring(port))
end

local function read_connection(path)
  local connection, wrong = json.load(path)
  if type(connection) ~= "table" then error(wrong or path, 0) end
  local scheme = connection.signature_scheme or "hmac-sha256"
  if connection.key and connection.key ~= "" and scheme ~= "hmac-sha256" then
    error(("%s: the signatures are %s, only hmac-sha256 is known"):format(path,
      tostring(scheme)), 0)
  end
  for channel in pairs(CHANNELS) do
    local name = PORTS[channel] or channel .. "_port"
    if not connection[name] then
      error(("%s: there is no %s"):format(path, name), 0)
    end
  end
  return connection
end

-- Front ends name themselves here; a kernel that outlives one is of no use.
local function parent_watch()
  local first = os.getenv "JPY_PARENT_PID" and kernel_host.parent()
  return function() return first and kernel_host.parent() ~= first end
end

-- Serves the front ends that the connection file names; the exit status.
function kernel.run(path, descriptors)
  ends = descriptors
  local connection = read_connection(path)
  local orphaned = parent_watch()
  wire = messages.new(tostring(connection.key or ""))
  streams.start(ends.out, ends.err)
  for channel, kind in pairs(CHANNELS) do
    sockets[channel] = kernel_host.open_socket(kind,
                                               endpoint(connection, channel))
  end
  state "starting"
  while not status and not orphaned() do step() end
  kernel_host.end_session()
  kernel_host.close_sockets()
  return status or 0
end

return kernel
