# cmake -DROTINI=program -DINTO=directory -P describe.cmake: the manual pages and shell completions of the command, where shells and man
# look for them in a prefix.

file(REMOVE_RECURSE "${INTO}/share")
execute_process(COMMAND "${ROTINI}" man "${INTO}/share/man/man1" COMMAND_ERROR_IS_FATAL ANY)
foreach(completion
    bash=bash-completion/completions/rotini
    zsh=zsh/site-functions/_rotini
    fish=fish/vendor_completions.d/rotini.fish)
  string(REGEX MATCH "^(.*)=(.*)$" completion "${completion}")
  execute_process(
    COMMAND "${ROTINI}" completions "${CMAKE_MATCH_1}"
    OUTPUT_VARIABLE script
    COMMAND_ERROR_IS_FATAL ANY
  )
  file(WRITE "${INTO}/share/${CMAKE_MATCH_2}" "${script}")
endforeach()
file(TOUCH "${INTO}/stamp")
